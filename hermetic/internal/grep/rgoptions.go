package grep

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/regex"
)

// rgKnown are ripgrep's options that are here. Those that would ask for what
// there is none of (colors, threads, an order) change nothing.
func rgKnown() []command.Option {
	var known []command.Option
	for spec := range strings.FieldsSeq("e=regexp: f=file: i=ignore-case S=smart-case s=case-sensitive w=word-regexp x=line-regexp F=fixed-strings " +
		"P=pcre2 v=invert-match n=line-number N=no-line-number H=with-filename I=no-filename l=files-with-matches =files-without-match c=count " +
		"o=only-matching m=max-count: q=quiet A=after-context: B=before-context: C=context: g=glob: t=type: T=type-not: =type-list =files " +
		".=hidden =no-hidden =no-ignore =no-ignore-vcs =ignore =no-require-git u=unrestricted L=follow =no-follow a=text =binary 0=null d=max-depth: =maxdepth: " +
		"b=byte-offset =heading =no-heading =no-messages =color: =colors: =sort: j=threads: =line-buffered =no-config =no-mmap =mmap " +
		"=context-separator: =no-context-separator =include-zero V=version h=help =auto-hybrid-regex =engine: =no-unicode =no-ignore-parent " +
		"=no-ignore-global =no-ignore-messages =one-file-system =crlf =block-buffered p=pretty") {
		o := command.Option{}
		short, long, _ := strings.Cut(spec, "=")
		if short != "" {
			o.Short = short[0]
		}
		o.Long = strings.TrimSuffix(long, ":")
		if o.Long != long {
			o.Takes = command.Value
		}
		known = append(known, o)
	}
	return known
}

// rgOptions are those that grep has not.
type rgOptions struct {
	options
	smart, listing, types   bool
	hidden, noIgnore, noVCS bool
	noRequire               bool
	zeroes, allBinary       bool
	depth                   int
	globs                   []string
	ofType, notType         []string
}

func (o *rgOptions) set(c *command.Call, s command.Set) error {
	switch s.Name {
	case "regexp":
		o.patterns = append(o.patterns, s.Value)
	case "file":
		text, err := (&optionParser{c: c}).readAll(s.Value)
		if err != nil {
			return err
		}
		o.patterns = append(o.patterns, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	case "ignore-case", "smart-case", "case-sensitive":
		o.fold, o.smart = s.Name == "ignore-case", s.Name == "smart-case"
	case "fixed-strings":
		o.syntax = regex.Fixed
	case "unrestricted":
		switch {
		case !o.noIgnore:
			o.noIgnore = true
		case !o.hidden:
			o.hidden = true
		default:
			o.allBinary = true
		}
	case "glob":
		o.globs = append(o.globs, s.Value)
	case "type", "type-not":
		if _, ok := rgTypes()[s.Value]; !ok && s.Value != "all" {
			return fmt.Errorf("unrecognized file type: %s", s.Value)
		}
		if s.Name == "type" {
			o.ofType = append(o.ofType, s.Value)
		} else {
			o.notType = append(o.notType, s.Value)
		}
	case "context-separator":
		o.separator = s.Value
	default:
		if n := o.number(s.Name); n != nil {
			v, err := strconv.ParseUint(s.Value, 10, 31)
			if err != nil {
				return fmt.Errorf("error parsing flag --%s: value is not a valid number: invalid digit found in string", s.Name)
			}
			*n = int(v)
			if s.Name == "context" {
				o.before = int(v)
			}
			return nil
		}
		o.flag(s.Name)
	}
	return nil
}

// number is the option of that name which is one.
func (o *rgOptions) number(name string) *int {
	return map[string]*int{
		"max-count": &o.max, "after-context": &o.after, "before-context": &o.before, "context": &o.after,
		"max-depth": &o.depth, "maxdepth": &o.depth,
	}[name]
}

// flag sets an option without a value; the rest changes nothing here.
func (o *rgOptions) flag(name string) {
	switch name {
	case "no-line-number":
		o.lineNumber = false
	case "no-filename":
		o.named, o.unnamed = false, true
	case "with-filename":
		o.named, o.unnamed = true, false
	case "files-with-matches":
		o.list = 'l'
	case "files-without-match":
		o.list = 'L'
	case "no-hidden":
		o.hidden = false
	case "ignore":
		o.noIgnore, o.noVCS = false, false
	case "no-follow":
		o.follow = false
	case "no-heading":
		o.heading = false
	case "no-context-separator":
		o.separate = false
	case "pretty":
		o.heading, o.lineNumber = true, true
	}
	for flag, field := range map[string]*bool{
		"word-regexp": &o.word, "line-regexp": &o.line, "invert-match": &o.invert, "line-number": &o.lineNumber, "count": &o.count,
		"only-matching": &o.only, "quiet": &o.quiet, "type-list": &o.types, "files": &o.listing, "hidden": &o.hidden,
		"no-ignore": &o.noIgnore, "no-ignore-vcs": &o.noVCS, "no-require-git": &o.noRequire, "follow": &o.follow,
		"text": &o.allBinary, "null": &o.null, "byte-offset": &o.byteOffset, "heading": &o.heading, "no-messages": &o.silent,
		"include-zero": &o.zeroes, "line-buffered": &o.lineBuffered,
	} {
		if flag == name {
			*field = true
		}
	}
}

// pattern makes one expression of all of them: Rust's are read as Perl's are.
func (o *rgOptions) pattern() {
	if o.smart {
		o.fold = !hasUpper(strings.Join(o.patterns, "\n"))
	}
	if o.syntax == regex.Perl && len(o.patterns) > 1 {
		o.patterns = []string{"(?:" + strings.Join(o.patterns, ")|(?:") + ")"}
	}
}

// hasUpper reports a capital letter that stands for itself.
func hasUpper(pattern string) bool {
	escaped := false
	for _, r := range pattern {
		if !escaped && unicode.IsUpper(r) {
			return true
		}
		escaped = r == '\\' && !escaped
	}
	return false
}
