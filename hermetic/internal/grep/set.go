package grep

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/regex"
)

// matcher chooses the syntax of the patterns; another one is a conflict.
func (p *optionParser) matcher(s regex.Syntax) error {
	if p.chosen && p.o.syntax != s {
		return errors.New("conflicting matchers specified")
	}
	p.o.syntax, p.chosen = s, true
	return nil
}

// flags are the options that only set something.
func (p *optionParser) flags() map[string]func() {
	o := &p.o
	return map[string]func(){
		"ignore-case": func() { o.fold = true }, "y": func() { o.fold = true }, "no-ignore-case": func() { o.fold = false },
		"word-regexp": func() { o.word = true }, "line-regexp": func() { o.line = true }, "null-data": func() { o.zero = true },
		"no-messages": func() { o.silent = true }, "invert-match": func() { o.invert = true }, "byte-offset": func() { o.byteOffset = true },
		"line-number": func() { o.lineNumber = true }, "line-buffered": func() { o.lineBuffered = true },
		"with-filename": func() { o.named, o.unnamed = true, false }, "no-filename": func() { o.named, o.unnamed = false, true },
		"only-matching": func() { o.only = true }, "quiet": func() { o.quiet = true }, "silent": func() { o.quiet = true },
		"text": func() { o.binary = "text" }, "I": func() { o.binary = "without-match" },
		"binary": func() {}, "unix-byte-offsets": func() { p.c.Errorf("warning: --unix-byte-offsets (-u) is obsolete") },
		"recursive":             func() { o.recurse = true },
		"dereference-recursive": func() { o.recurse, o.follow = true, true },
		"files-without-match":   func() { o.list = 'L' }, "files-with-matches": func() { o.list = 'l' }, "count": func() { o.count = true },
		"initial-tab": func() { o.tab = true }, "null": func() { o.null = true }, "no-group-separator": func() { o.separate = false },
	}
}

// set takes one option.
func (p *optionParser) set(s command.Set) error {
	if len(s.Name) == 1 && s.Name[0] >= '0' && s.Name[0] <= '9' {
		p.digits += s.Name
		n, err := contextLength(p.digits)
		p.context = n
		return err
	}
	p.digits = ""
	if f := p.flags()[s.Name]; f != nil {
		f()
		return nil
	}
	switch s.Name {
	case "help":
		return errHelp
	case "version":
		return errVersion
	case "extended-regexp":
		return p.matcher(regex.GrepExtended)
	case "fixed-strings", "fixed-regexp":
		return p.matcher(regex.Fixed)
	case "basic-regexp":
		return p.matcher(regex.GrepBasic)
	case "perl-regexp":
		return p.matcher(regex.Perl)
	case "X":
		return p.namedMatcher(s.Value)
	}
	return p.valued(s)
}

func (p *optionParser) namedMatcher(name string) error {
	syntax, ok := map[string]regex.Syntax{
		"grep": regex.GrepBasic, "egrep": regex.GrepExtended, "fgrep": regex.Fixed, "perl": regex.Perl,
		"awk": regex.Awk, "gawk": regex.Awk, "posixawk": regex.Awk,
	}[name]
	if !ok {
		return fmt.Errorf("invalid matcher %s", name)
	}
	return p.matcher(syntax)
}

// valued takes an option that has a value.
func (p *optionParser) valued(s command.Set) (err error) {
	o := &p.o
	switch s.Name {
	case "regexp":
		p.addPatterns(s.Value)
	case "file":
		return p.patternFile(s.Value)
	case "max-count":
		o.max, err = maxCount(s.Value)
	case "label":
		o.label = s.Value
	case "binary-files":
		o.binary = s.Value
		if s.Value != "binary" && s.Value != "text" && s.Value != "without-match" {
			return errors.New("unknown binary-files type")
		}
	case "directories":
		o.directories = s.Value
		if s.Value != "read" && s.Value != "recurse" && s.Value != "skip" {
			return fmt.Errorf("invalid argument ‘%s’ for ‘--directories’\nValid arguments are:\n  - ‘read’\n  - ‘recurse’\n  - ‘skip’", s.Value)
		}
		o.recurse = s.Value == "recurse"
	case "devices":
		o.devices = s.Value
		if s.Value != "read" && s.Value != "skip" {
			return errors.New("unknown devices method")
		}
	case "include", "exclude":
		o.files = append(o.files, glob{s.Value, s.Name == "include"})
	case "exclude-from":
		return p.excludeFrom(s.Value)
	case "exclude-dir":
		o.dirs = append(o.dirs, glob{trimSlashes(s.Value), false})
	case "before-context":
		o.before, err = contextLength(s.Value)
	case "after-context":
		o.after, err = contextLength(s.Value)
	case "context":
		p.context, err = contextLength(s.Value)
	case "group-separator":
		o.separator, o.separate = s.Value, true
	case "color", "colour":
		switch s.Value {
		case "always", "yes", "force":
			o.color = true
		case "", "auto", "tty", "if-tty", "never", "no", "none":
			o.color = false
		default:
			return errHelp
		}
	}
	return err
}

func contextLength(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%s: invalid context length argument", s)
	}
	return int(min(n, math.MaxInt32)), nil
}

// maxCount reads -m; a negative one is no bound.
func maxCount(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errors.New("invalid max count")
	}
	return int(max(n, -1)), nil
}

// addPatterns adds the patterns of text, one a line, each once.
func (p *optionParser) addPatterns(text string) {
	p.havePatterns = true
	for _, one := range strings.Split(text, "\n") {
		if !p.seen[one] {
			p.seen[one] = true
			p.o.patterns = append(p.o.patterns, one)
		}
	}
}

// readAll reads a file of patterns or globs.
func (p *optionParser) readAll(name string) ([]byte, error) {
	r := p.c.Stdin
	if name != "-" {
		f, err := p.c.FS.Open(p.c.Path(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %s", name, command.Reason(err))
		}
		defer f.Close()
		r = f
	}
	most := p.c.Budget.Limits.Memory / 4
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s", name, command.Reason(err))
	case int64(len(b)) > most:
		return nil, errors.New("memory exhausted")
	}
	return b, nil
}

func (p *optionParser) patternFile(name string) error {
	b, err := p.readAll(name)
	if err != nil {
		return err
	}
	p.havePatterns = true
	if len(b) > 0 {
		p.addPatterns(strings.TrimSuffix(string(b), "\n"))
	}
	return nil
}

func (p *optionParser) excludeFrom(name string) error {
	b, err := p.readAll(name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, " \t\r\n")
		if line != "" && line[0] != '#' {
			p.o.files = append(p.o.files, glob{line, false})
		}
	}
	return nil
}

// finish settles what follows from several options.
func (p *optionParser) finish() *options {
	o := &p.o
	if o.before < 0 {
		o.before = max(p.context, 0)
	}
	if o.after < 0 {
		o.after = max(p.context, 0)
	}
	if len(o.operands) > 1 && !o.unnamed {
		o.named = true
	}
	if o.count || o.list != 0 || o.quiet {
		o.before, o.after = 0, 0
	}
	if o.recurse && len(o.operands) == 0 && !o.unnamed {
		o.named = true
	}
	return o
}
