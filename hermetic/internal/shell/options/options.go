// Package options keeps the options of a shell: those of set and those of
// shopt.
//
//	o := options.Default()
//	o.SetName("pipefail", true) // set -o pipefail
//	if o.On(options.ErrExit) { ... }
//	if o.Shopt["nullglob"] { ... }
//
// It knows the names and letters. What an option does is written where it is
// done; the builtins set and shopt are in package builtin.
package options

import (
	"maps"
	"slices"
	"strings"
)

// Flags are the options of set, as bits.
type Flags uint64

const (
	AllExport Flags = 1 << iota
	NoBrace         // the opposite of braceexpand
	ErrExit
	ErrTrace
	FuncTrace
	HashAll
	HistExpand
	History
	IgnoreEOF
	InteractiveComments
	Keyword
	Monitor
	NoClobber
	NoExec
	NoGlob
	NoLog
	Notify
	NoUnset
	OneCmd
	Physical
	PipeFail
	Posix
	Privileged
	Verbose
	XTrace
	Command // bash -c
	Stdin   // bash -s
	Emacs
	Vi
)

// Set is the options of one shell. The goroutine of the shell owns it.
type Set struct {
	Flags Flags
	Shopt map[string]bool // by name; all the names are in Shopts
}

// Default is the options of a script.
func Default() Set {
	return Set{Flags: HashAll | InteractiveComments, Shopt: defaultShopts()}
}

// Clone copies the options for a subshell.
func (s *Set) Clone() Set { return Set{Flags: s.Flags, Shopt: maps.Clone(s.Shopt)} }

// On reports whether one of the flags is set.
func (s *Set) On(f Flags) bool { return s.Flags&f != 0 }

// Option is one option of set.
type Option struct {
	Name   string
	Letter byte // 0: it has none
	bit    Flags
}

// All lists the options of set -o, sorted by name.
func All() []Option {
	return []Option{
		{"allexport", 'a', AllExport},
		{"braceexpand", 'B', NoBrace},
		{"emacs", 0, Emacs},
		{"errexit", 'e', ErrExit},
		{"errtrace", 'E', ErrTrace},
		{"functrace", 'T', FuncTrace},
		{"hashall", 'h', HashAll},
		{"histexpand", 'H', HistExpand},
		{"history", 0, History},
		{"ignoreeof", 0, IgnoreEOF},
		{"interactive-comments", 0, InteractiveComments},
		{"keyword", 'k', Keyword},
		{"monitor", 'm', Monitor},
		{"noclobber", 'C', NoClobber},
		{"noexec", 'n', NoExec},
		{"noglob", 'f', NoGlob},
		{"nolog", 0, NoLog},
		{"notify", 'b', Notify},
		{"nounset", 'u', NoUnset},
		{"onecmd", 't', OneCmd},
		{"physical", 'P', Physical},
		{"pipefail", 0, PipeFail},
		{"posix", 0, Posix},
		{"privileged", 'p', Privileged},
		{"verbose", 'v', Verbose},
		{"vi", 0, Vi},
		{"xtrace", 'x', XTrace},
	}
}

// IsOn reports whether o is on in s.
func (o Option) IsOn(s *Set) bool { return s.On(o.bit) != (o.bit == NoBrace) }

func (o Option) set(s *Set, on bool) {
	if o.bit == NoBrace {
		on = !on
	}
	if on {
		s.Flags |= o.bit
	} else {
		s.Flags &^= o.bit
	}
}

// Letters is $-.
func (s *Set) Letters() string {
	var b []byte
	for _, o := range All() {
		if o.Letter != 0 && o.IsOn(s) {
			b = append(b, o.Letter)
		}
	}
	slices.SortFunc(b, func(x, y byte) int {
		const order = "abefhkmnptuvxBCEHPT"
		return strings.IndexByte(order, x) - strings.IndexByte(order, y)
	})
	if s.On(Command) {
		b = append(b, 'c')
	}
	if s.On(Stdin) {
		b = append(b, 's')
	}
	return string(b)
}

// Names lists the options of set that are on: $SHELLOPTS.
func (s *Set) Names() []string {
	var out []string
	for _, o := range All() {
		if o.IsOn(s) {
			out = append(out, o.Name)
		}
	}
	return out
}

// SetName turns an option of set -o on or off. It reports false for an unknown
// name.
func (s *Set) SetName(name string, on bool) bool {
	for _, o := range All() {
		if o.Name == name {
			o.set(s, on)
			return true
		}
	}
	return false
}

// SetLetter turns an option of set on or off. It reports false for an unknown
// letter.
func (s *Set) SetLetter(letter byte, on bool) bool {
	for _, o := range All() {
		if o.Letter == letter {
			o.set(s, on)
			return true
		}
	}
	return false
}
