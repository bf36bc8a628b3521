package jq

import (
	"io"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/jq/value"
)

// JqOptions are jq's.
type JqOptions struct {
	program                              string
	programGiven, fromFile               bool
	files                                []string
	named                                *value.Object
	positional                           []any
	rawInput, slurp, null, stream        bool
	raw, join, nul, ascii, compact       bool
	sorted, colors, tab, seq, exitStatus bool
	unbuffered                           bool
	indent                               int
	rest                                 string // what further operands are: "", "args" or "jsonargs"
}

const jqUsage = `Usage:	jq [OPTIONS] FILTER [FILES...]
	jq [OPTIONS] -f FILE [FILES...]
	jq [OPTIONS] --args FILTER [ARGUMENTS...]
	jq [OPTIONS] --jsonargs FILTER [JSON_VALUES...]

The jq language on JSON, as jq 1.7 has it; there are no modules, and regular
expressions are those of RE2.

  -n -R -s          null input; raw lines; all inputs as one
  -c -r -j -a -S    compact; raw strings; and no newlines; ASCII; sorted keys
  -C -M --tab --indent N --raw-output0 --seq --stream --unbuffered
  -e                status 1 for false and null, 4 for no output
  --arg N V  --argjson N V  --slurpfile N F  --rawfile N F  --args  --jsonargs
`

func (o *JqOptions) parse(w *gnu.Work) bool {
	o.named = value.NewObject(0)
	args := w.Args[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			for _, a := range args {
				if !o.operand(w, a) {
					return false
				}
			}
			args = nil
		case strings.HasPrefix(a, "--"):
			used, ok := o.long(w, a[2:], args)
			if !ok {
				return false
			}
			args = args[used:]
		case len(a) > 1 && a[0] == '-' && a[1]|0x20 >= 'a' && a[1]|0x20 <= 'z':
			used, ok := o.letters(w, a, args)
			if !ok {
				return false
			}
			args = args[used:]
		case !o.operand(w, a):
			return false
		}
	}
	if o.fromFile {
		return o.programFile(w)
	}
	if !o.programGiven {
		o.program = "."
	}
	return true
}

// programFile takes the first operand as the name of a file with the program.
func (o *JqOptions) programFile(w *gnu.Work) bool {
	name := o.program
	if !o.programGiven {
		w.Die(2, "error: no program file")
		return false
	}
	text, ok := o.File(w, name)
	o.program = text
	return ok
}

// File reads a file that holds the program; false: it has complained.
func (o *JqOptions) File(w *gnu.Work, name string) (string, bool) {
	r, err := w.OpenFile(name)
	var b []byte
	if err == nil {
		b, err = w.All(r)
		_ = r.Close()
	}
	if err != nil {
		w.Die(2, "error: Could not open %s: %s", name, command.Reason(err))
		return "", false
	}
	return string(b), true
}

func (o *JqOptions) operand(w *gnu.Work, a string) bool {
	switch {
	case !o.programGiven:
		o.program, o.programGiven = a, true
	case o.rest == "args":
		o.positional = append(o.positional, a)
	case o.rest == "jsonargs":
		v, err := value.ParseJSON(a)
		if err != nil {
			w.Die(2, "Invalid JSON text passed to --jsonargs")
			return false
		}
		o.positional = append(o.positional, v)
	default:
		o.files = append(o.files, a)
	}
	return true
}

func (o *JqOptions) letters(w *gnu.Work, word string, rest []string) (int, bool) {
	used := 0
	for _, c := range word[1:] {
		switch c {
		case 'L':
			used = 1
		case 'f':
			o.fromFile = true
		default:
			name := map[rune]string{
				'n': "null-input", 'R': "raw-input", 's': "slurp", 'r': "raw-output", 'j': "join-output", 'a': "ascii-output", 'c': "compact-output",
				'S': "sort-keys", 'C': "color-output", 'M': "monochrome-output", 'e': "exit-status", 'h': "help", 'V': "version",
			}[c]
			if name == "" {
				return 0, o.unknown(w, word)
			}
			if _, ok := o.long(w, name, nil); !ok {
				return 0, false
			}
		}
	}
	return min(used, len(rest)), true
}

func (o *JqOptions) unknown(w *gnu.Work, word string) bool {
	w.Die(2, "Unknown arguments: %s", word)
	_, _ = io.WriteString(w.Stderr, "Use jq --help for help with command-line options,\nor see the jq manpage, or online docs  at https://jqlang.github.io/jq\n")
	return false
}

// long takes one option; used is how many of rest it took.
func (o *JqOptions) long(w *gnu.Work, name string, rest []string) (used int, ok bool) {
	flags := map[string]*bool{
		"null-input": &o.null, "raw-input": &o.rawInput, "slurp": &o.slurp, "raw-output": &o.raw, "ascii-output": &o.ascii,
		"compact-output": &o.compact, "sort-keys": &o.sorted, "color-output": &o.colors, "exit-status": &o.exitStatus, "tab": &o.tab,
		"seq": &o.seq, "stream": &o.stream, "unbuffered": &o.unbuffered, "from-file": &o.fromFile,
	}
	if f := flags[name]; f != nil {
		*f = true
		return 0, true
	}
	switch name {
	case "join-output":
		o.raw, o.join = true, true
	case "raw-output0":
		o.raw, o.nul = true, true
	case "monochrome-output":
		o.colors = false
	case "args", "jsonargs":
		o.rest = name
	case "help":
		w.Out.WriteString(jqUsage)
		return 0, false
	case "version":
		w.Out.WriteString("jq-1.7.1 (egressd hermetic)\n")
		return 0, false
	case "indent":
		return o.setIndent(w, rest)
	case "arg", "argjson", "slurpfile", "rawfile", "argfile":
		if len(rest) < 2 {
			w.Die(2, "--%s takes two parameters (e.g. --%s name value)", name, name)
			o.hint(w)
			return 0, false
		}
		v, ok := o.given(w, name, rest[0], rest[1])
		if _, had := o.named.Get(rest[0]); ok && !had {
			o.named.Put(rest[0], v)
		}
		return 2, ok
	default:
		return 0, o.unknown(w, "--"+name)
	}
	return 0, true
}

func (o *JqOptions) hint(w *gnu.Work) {
	_, _ = io.WriteString(w.Stderr, "Use jq --help for help with command-line options,\nor see the jq manpage, or online docs  at https://jqlang.github.io/jq\n")
}

func (o *JqOptions) setIndent(w *gnu.Work, rest []string) (int, bool) {
	if len(rest) == 0 {
		w.Die(2, "--indent takes one parameter")
		o.hint(w)
		return 0, false
	}
	n, err := strconv.Atoi(rest[0])
	switch {
	case err != nil:
		n = 0
	case n < 0:
		w.Die(2, "Cannot indent less than zero")
		o.hint(w)
		return 0, false
	case n > 7:
		w.Die(2, "Cannot indent more than 7 characters")
		o.hint(w)
		return 0, false
	}
	o.indent, o.tab = n, false
	o.compact = o.compact || n == 0
	return 1, true
}

// given is the value of --arg and the like.
func (o *JqOptions) given(w *gnu.Work, option, name, text string) (any, bool) {
	switch option {
	case "arg":
		return strings.ToValidUTF8(text, "\ufffd"), true
	case "argjson":
		v, err := value.ParseJSON(text)
		if err != nil || strings.TrimSpace(text) == "" {
			w.Die(2, "Invalid JSON text passed to --argjson")
			o.hint(w)
			return nil, false
		}
		return v, true
	}
	r, err := w.OpenFile(text)
	if err != nil {
		w.Die(2, "Bad JSON in --%s %s %s: Could not open %s: %s", option, name, text, text, command.Reason(err))
		return nil, false
	}
	defer r.Close()
	if option == "rawfile" {
		b, err := w.All(r)
		if err != nil {
			w.Die(2, "Bad JSON in --%s %s %s: %s", option, name, text, command.Reason(err))
		}
		return strings.ToValidUTF8(string(b), "\ufffd"), err == nil
	}
	all := []any{}
	for d := value.NewReader(r, w.Most()); ; {
		v, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			w.Die(2, "Bad JSON in --%s %s %s: %s", option, name, text, err)
			return nil, false
		}
		all = append(all, v)
	}
	if option == "argfile" && len(all) == 1 {
		return all[0], true
	}
	return all, true
}
