package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"egressd/internal/cli"
	"egressd/internal/daemon"
	"egressd/internal/daemon/systemd"
)

// daemon runs the daemon until a signal ends it.
func (p *program) daemon(args []string) int {
	var o options
	fs := o.flags()
	if code, done := p.parse(fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return p.Usage(unexpected(fs.Arg(0)))
	}
	c, err := o.config()
	if err != nil {
		return p.Usage(err)
	}
	c.Log, c.Stdout, c.Version, c.Getenv, c.Harden = p.logger(&o), p.Stdout, cli.Version(), p.Getenv, true
	c.Resource = withHost(c.Resource, os.Hostname)
	c.Memory = memoryMax()
	p.limitMemory(c.Memory, c.Log)
	if c.Sockets, err = systemd.Listeners(p.Environ); err != nil {
		return p.Fail(cli.ExitNo, err)
	}
	if c.Notifier, err = systemd.NewNotifier(p.Environ); err != nil {
		return p.Fail(cli.ExitNo, err)
	}
	for _, name := range systemd.Variables() {
		_ = os.Unsetenv(name) // fails for impossible names only
	}
	return p.serve(c)
}

// serve runs the daemon and passes it the signals.
func (p *program) serve(c daemon.Config) int {
	signal.Ignore(syscall.SIGPIPE) // if the reader of the events goes away, the write fails and flows are denied
	hup, term := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(hup, syscall.SIGHUP)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	now := make(chan struct{})
	c.Reload, c.Now = hup, now
	ctx, drain := context.WithCancel(context.Background())
	defer drain()
	go endings(term, drain, now)
	err := daemon.Run(ctx, c)
	if err != nil {
		if note := mentioned(err.Error(), p.variables); note != "" {
			err = fmt.Errorf("%w\n%s", err, note)
		}
	}
	var config *daemon.ConfigError
	switch {
	case err == nil:
		return cli.ExitOK
	case errors.As(err, &config):
		return p.Fail(cli.ExitUsage, err)
	}
	return p.Fail(cli.ExitNo, err)
}

// endings turns the first signal into a drain, and the second into an immediate end.
func endings(term <-chan os.Signal, drain context.CancelFunc, now chan<- struct{}) {
	<-term
	drain()
	<-term
	close(now)
}

func (p *program) logger(o *options) *slog.Logger {
	options := &slog.HandlerOptions{Level: o.logLevel}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(p.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(p.Stderr, options))
}

// unexpected says what to type instead of a word that is neither command nor flag.
func unexpected(word string) error {
	var names []string
	for _, c := range (*program)(nil).commands() {
		if !strings.HasPrefix(c.Name, "-") {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	if meant := cli.Meant((*program)(nil).commands(), word); meant != "" {
		return fmt.Errorf("there is no command %q; did you mean egressd %s?", word, meant)
	}
	return errors.New("there is no command " + strconv.Quote(word) + "; there are " + strings.Join(names, ", ") + ". Without one, egressd runs as a daemon and takes flags only")
}
