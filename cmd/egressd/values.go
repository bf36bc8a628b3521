package main

import (
	"errors"
	"flag"
	"log/slog"
	"strconv"
	"time"
)

// span is a flag whose value is a time: 30s, 10m, or a number of seconds, as
// launch takes it.
type span time.Duration

func timeVar(fs *flag.FlagSet, d *time.Duration, name string, def time.Duration, usage string) {
	*d = def
	fs.Var((*span)(d), name, usage)
}

func (s *span) String() string {
	if s == nil {
		return ""
	}
	return time.Duration(*s).String()
}

// Set implements flag.Value. Whether zero or less makes sense, the flag's command
// says.
func (s *span) Set(v string) error {
	d, err := time.ParseDuration(v)
	if n, nerr := strconv.ParseUint(v, 10, 31); nerr == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil {
		return errors.New("write a time such as 30s or 10m")
	}
	*s = span(d)
	return nil
}

// level is a flag whose value is a level of the log.
type level slog.Level

func (l *level) String() string {
	if l == nil {
		return ""
	}
	return slog.Level(*l).String()
}

// Set implements flag.Value.
func (l *level) Set(v string) error {
	if (*slog.Level)(l).UnmarshalText([]byte(v)) != nil {
		return errors.New("write debug, info, warn or error")
	}
	return nil
}
