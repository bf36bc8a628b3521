package curl

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/fetch"
)

var (
	errUnknown  = errors.New("is unknown")
	errBadUse   = errors.New("is badly used here")
	errNumber   = errors.New("expected a proper numerical parameter")
	errPositive = errors.New("expected a positive numerical parameter")
	errConfig   = errors.New("error encountered when reading a file")
	errVersion  = errors.New("version")
	errHelp     = errors.New("help")
)

// nestMax bounds -K inside -K.
const nestMax = 8

// parser reads curl's command line.
type parser struct {
	c     *command.Call
	known []option
	g     global
	s     *settings
	done  []*settings
	depth int
}

const tryHelp = "curl: try 'curl --help' or 'curl --manual' for more information\n"

// line reads args; the status is of a mistake, which it has told.
func (p *parser) line(args []string) (status int, err error) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			p.s.urls = append(p.s.urls, args...)
			return 0, nil
		}
		if len(arg) < 2 || arg[0] != '-' {
			p.s.urls = append(p.s.urls, arg)
			continue
		}
		used, err := p.one(arg, args)
		if err != nil {
			return p.mistake(arg, err), err
		}
		args = args[used:]
	}
	return 0, nil
}

func (p *parser) mistake(arg string, err error) int {
	var f *fetch.Failure
	switch {
	case errors.Is(err, errVersion) || errors.Is(err, errHelp):
		return 0
	case errors.As(err, &f):
		fmt.Fprintf(p.c.Stderr, "curl: %s\n", f.Text)
		fmt.Fprint(p.c.Stderr, tryHelp)
		return f.Code
	}
	fmt.Fprintf(p.c.Stderr, "curl: option %s: %v\n%s", arg, err, tryHelp)
	switch {
	case errors.Is(err, errConfig):
		return fetch.ExitRead
	case errors.Is(err, fetch.ErrMemory):
		return fetch.ExitMemory
	}
	return fetch.ExitUsage
}

// one reads one word; used is how many of rest it took.
func (p *parser) one(arg string, rest []string) (used int, err error) {
	if strings.HasPrefix(arg, "--") {
		o, off, err := p.long(arg[2:])
		if err != nil {
			return 0, err
		}
		if !o.value {
			return 0, p.set(o, off)
		}
		if len(rest) == 0 {
			return 0, errors.New("requires parameter")
		}
		return 1, p.set(o, rest[0])
	}
	for i := 1; i < len(arg); i++ {
		o, ok := p.letter(arg[i])
		switch {
		case !ok:
			return 0, errUnknown
		case !o.value:
			if err := p.set(o, ""); err != nil {
				return 0, err
			}
		case i+1 < len(arg):
			return 0, p.set(o, arg[i+1:])
		case len(rest) == 0:
			return 0, errors.New("requires parameter")
		default:
			return 1, p.set(o, rest[0])
		}
	}
	return 0, nil
}

func (p *parser) set(o option, v string) error {
	if o.deny != "" {
		return errors.New("not supported here: " + strings.TrimPrefix(o.deny, "it is not supported here"))
	}
	return o.set(p, v)
}

func (p *parser) letter(b byte) (option, bool) {
	for _, o := range p.known {
		if o.short == b {
			return o, true
		}
	}
	return option{}, false
}

// long finds an option by its name or the only beginning that fits; off is "no"
// for --no-NAME.
func (p *parser) long(name string) (o option, off string, err error) {
	for _, o := range p.known {
		if o.long == name {
			return o, "", nil
		}
	}
	bare, no := strings.CutPrefix(name, "no-")
	if no {
		off = "no"
	}
	var like []option
	for _, o := range p.known {
		if o.long == bare && (!no || !o.value) {
			return o, off, nil
		}
		if name != "" && strings.HasPrefix(o.long, name) {
			like = append(like, o)
		}
	}
	switch {
	case len(like) == 1:
		return like[0], "", nil
	case len(like) == 0:
		return o, "", errUnknown
	}
	return o, "", errors.New("is ambiguous")
}

func duration(v string, at *time.Duration) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) {
		return errNumber
	}
	if f < 0 {
		return errPositive
	}
	*at = time.Duration(min(f, 1e8) * float64(time.Second))
	return nil
}

func seconds(v string, at *time.Duration) error {
	n := 0
	if err := number(v, &n, 0); err != nil {
		return err
	}
	*at = time.Duration(n) * time.Second
	return nil
}

func (p *parser) next() error {
	if len(p.s.urls) == 0 {
		return fetch.Fail(fetch.ExitUsage, "no URL specified!")
	}
	p.done = append(p.done, p.s)
	p.s = newSettings()
	return nil
}

func (p *parser) warn(format string, args ...any) {
	if !p.g.silent {
		fmt.Fprint(p.c.Stderr, warning(fmt.Sprintf(format, args...)))
	}
}

// warning wraps as curl does: 79 columns, "Warning: " before each line.
func warning(s string) string {
	const width = 79 - len("Warning: ")
	var b strings.Builder
	for len(s) > width {
		cut := strings.LastIndexByte(s[:width], ' ')
		if cut <= 0 {
			cut = width - 1
		}
		b.WriteString("Warning: " + s[:cut+1] + "\n")
		s = s[cut+1:]
	}
	return b.String() + "Warning: " + s + "\n"
}

// most is how much one argument may bring into memory.
func (p *parser) most() int64 { return fetch.MostHeld(p.c) }
