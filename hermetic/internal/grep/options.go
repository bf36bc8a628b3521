package grep

import (
	"errors"
	"fmt"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/regex"
)

// flavour is the name that grep was called by.
type flavour int

const (
	basic flavour = iota
	extended
	fixed
	zipped
)

// options are what one run was asked for.
type options struct {
	syntax                                  regex.Syntax
	patterns                                []string
	fold, invert, word, line                bool
	count, quiet, silent                    bool
	list                                    byte // 'l', 'L', or 0
	lineNumber, byteOffset, only, tab, null bool
	named, unnamed                          bool // print the name of the file, or never
	label                                   string
	zero                                    bool // records end in NUL
	before, after                           int
	separator                               string
	separate                                bool
	max                                     int // lines per file; negative: all
	binary                                  string
	color, lineBuffered                     bool
	anyText                                 bool // what is no UTF-8 is text
	dropZero                                bool // -c leaves out files without a match
	heading                                 bool // the name of the file stands above its lines

	recurse, follow, omitDot bool
	directories, devices     string
	files, dirs              globs
	unzip                    bool
	operands                 []string
	byteLocale               bool
}

func known() []command.Option {
	o := []command.Option{
		{Short: 'E', Long: "extended-regexp"},
		{Short: 'F', Long: "fixed-strings"},
		{Short: 'F', Long: "fixed-regexp"},
		{Short: 'G', Long: "basic-regexp"},
		{Short: 'P', Long: "perl-regexp"},
		{Short: 'X', Takes: command.Value},
		{Short: 'e', Long: "regexp", Takes: command.Value},
		{Short: 'f', Long: "file", Takes: command.Value},
		{Short: 'i', Long: "ignore-case"},
		{Short: 'y'},
		{Long: "no-ignore-case"},
		{Short: 'w', Long: "word-regexp"},
		{Short: 'x', Long: "line-regexp"},
		{Short: 'z', Long: "null-data"},
		{Short: 's', Long: "no-messages"},
		{Short: 'v', Long: "invert-match"},
		{Short: 'V', Long: "version"},
		{Long: "help"},
		{Short: 'm', Long: "max-count", Takes: command.Value},
		{Short: 'b', Long: "byte-offset"},
		{Short: 'n', Long: "line-number"},
		{Long: "line-buffered"},
		{Short: 'H', Long: "with-filename"},
		{Short: 'h', Long: "no-filename"},
		{Long: "label", Takes: command.Value},
		{Short: 'o', Long: "only-matching"},
		{Short: 'q', Long: "quiet"},
		{Long: "silent"},
		{Long: "binary-files", Takes: command.Value},
		{Short: 'a', Long: "text"},
		{Short: 'I'},
		{Short: 'U', Long: "binary"},
		{Short: 'u', Long: "unix-byte-offsets"},
		{Short: 'd', Long: "directories", Takes: command.Value},
		{Short: 'D', Long: "devices", Takes: command.Value},
		{Short: 'r', Long: "recursive"},
		{Short: 'R', Long: "dereference-recursive"},
		{Long: "include", Takes: command.Value},
		{Long: "exclude", Takes: command.Value},
		{Long: "exclude-from", Takes: command.Value},
		{Long: "exclude-dir", Takes: command.Value},
		{Short: 'L', Long: "files-without-match"},
		{Short: 'l', Long: "files-with-matches"},
		{Short: 'c', Long: "count"},
		{Short: 'T', Long: "initial-tab"},
		{Short: 'Z', Long: "null"},
		{Short: 'B', Long: "before-context", Takes: command.Value},
		{Short: 'A', Long: "after-context", Takes: command.Value},
		{Short: 'C', Long: "context", Takes: command.Value},
		{Long: "group-separator", Takes: command.Value},
		{Long: "no-group-separator"},
		{Long: "color", Takes: command.Glued},
		{Long: "colour", Takes: command.Glued},
	}
	for d := byte('0'); d <= '9'; d++ {
		o = append(o, command.Option{Short: d})
	}
	return o
}

const usage = "Usage: grep [OPTION]... PATTERNS [FILE]...\n"

// parse reads the command line; no options: the run is over, with status.
func parse(c *command.Call, flavour flavour) (*options, int) {
	given, operands, err := c.Options(known(), false)
	if err != nil {
		return nil, badUsage(c, err)
	}
	p := optionParser{c: c, o: options{
		syntax: regex.GrepBasic, max: -1, before: -1, after: -1, label: "(standard input)", separator: "--", separate: true,
		binary: "binary", operands: operands, byteLocale: byteLocale(c), unzip: flavour == zipped,
	}, context: -1, seen: map[string]bool{}}
	switch flavour {
	case extended:
		p.o.syntax, p.chosen = regex.GrepExtended, true
	case fixed:
		p.o.syntax, p.chosen = regex.Fixed, true
	}
	for _, s := range given {
		switch err := p.set(s); {
		case errors.Is(err, errHelp):
			fmt.Fprint(c.Stdout, usage+"Search for PATTERNS in each FILE.\nOptions are those of GNU grep 3.8.\n")
			return nil, 0
		case errors.Is(err, errVersion):
			fmt.Fprintf(c.Stdout, "%s (egressd hermetic)\n", c.Args[0])
			return nil, 0
		case err != nil:
			c.Errorf("%v", err)
			return nil, statusError
		}
	}
	if !p.havePatterns {
		if len(p.o.operands) == 0 {
			return nil, badUsage(c, nil)
		}
		p.addPatterns(p.o.operands[0])
		p.o.operands = p.o.operands[1:]
	}
	return p.finish(), 0
}

var (
	errHelp    = errors.New("help")
	errVersion = errors.New("version")
)

func badUsage(c *command.Call, err error) int {
	if err != nil {
		c.Errorf("%v", err)
	}
	fmt.Fprintf(c.Stderr, "%sTry '%s --help' for more information.\n", usage, c.Args[0])
	return statusError
}

// byteLocale reports whether the locale is one whose characters are bytes.
func byteLocale(c *command.Call) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := c.Getenv(name); v != "" {
			return v == "C" || v == "POSIX"
		}
	}
	return false
}

type optionParser struct {
	c            *command.Call
	o            options
	context      int
	digits       string
	chosen       bool // -E, -F, -G or -P was given
	havePatterns bool
	seen         map[string]bool
}
