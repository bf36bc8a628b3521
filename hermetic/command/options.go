package command

import (
	"fmt"
	"slices"
	"strings"
)

// Takes says whether an option has a value.
type Takes int

// An option's value: none, always one ("-n 5", "-n5", "--lines=5", "--lines
// 5"), or only one that is glued to it ("-i.bak", "--color=auto").
const (
	Nothing Takes = iota
	Value
	Glued
)

// Option is one that a command knows, by its letter (0: none), its long name
// ("": none), or both.
type Option struct {
	Short byte
	Long  string
	Takes Takes
}

// Set is an option as it was given. Name is its long name, or else its letter.
type Set struct {
	Name, Value string
	Given       bool // a Glued value was there
}

// Options reads Args as getopt_long does: letters together, values glued or
// next, unique beginnings of long names, "--" ends them. Operands and options
// mix, unless inOrder: then the first operand ends the options (xargs, env,
// find). The error is getopt's own text; write it with BadUsage.
func (c *Call) Options(known []Option, inOrder bool) (given []Set, operands []string, err error) {
	args := c.Args[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
			return given, append(operands, args...), nil
		case strings.HasPrefix(a, "--"):
			s, used, err := long(known, a[2:], args)
			if err != nil {
				return nil, nil, err
			}
			given, args = append(given, s), args[used:]
		case len(a) > 1 && a[0] == '-':
			sets, used, err := letters(known, a[1:], args)
			if err != nil {
				return nil, nil, err
			}
			given, args = append(given, sets...), args[used:]
		default:
			operands = append(operands, a)
			if inOrder {
				return given, append(operands, args...), nil
			}
		}
	}
	return given, operands, nil
}

// long reads one long option; used is how many of rest it took.
func long(known []Option, text string, rest []string) (s Set, used int, err error) {
	name, value, glued := strings.Cut(text, "=")
	o, err := longNamed(known, name)
	if err != nil {
		return s, 0, err
	}
	s = Set{Name: o.Long, Value: value, Given: glued}
	switch {
	case o.Takes == Nothing && glued:
		return s, 0, fmt.Errorf("option '--%s' doesn't allow an argument", o.Long)
	case o.Takes == Value && !glued && len(rest) == 0:
		return s, 0, fmt.Errorf("option '--%s' requires an argument", o.Long)
	case o.Takes == Value && !glued:
		s.Value, s.Given = rest[0], true
		return s, 1, nil
	}
	return s, 0, nil
}

func longNamed(known []Option, name string) (Option, error) {
	var like []Option
	for _, o := range known {
		if o.Long == name && name != "" {
			return o, nil
		}
		if o.Long != "" && strings.HasPrefix(o.Long, name) {
			like = append(like, o)
		}
	}
	switch {
	case len(like) == 1:
		return like[0], nil
	case len(like) == 0 || name == "":
		return Option{}, fmt.Errorf("unrecognized option '--%s'", name)
	}
	var b strings.Builder
	for _, o := range like {
		fmt.Fprintf(&b, " '--%s'", o.Long)
	}
	return Option{}, fmt.Errorf("option '--%s' is ambiguous; possibilities:%s", name, b.String())
}

// letters reads one word of letters; used is how many of rest it took.
func letters(known []Option, word string, rest []string) (given []Set, used int, err error) {
	for i := 0; i < len(word); i++ {
		at := slices.IndexFunc(known, func(o Option) bool { return o.Short == word[i] && o.Short != 0 })
		if at < 0 {
			return nil, 0, fmt.Errorf("invalid option -- '%c'", word[i])
		}
		o := known[at]
		s := Set{Name: o.Long}
		if s.Name == "" {
			s.Name = string(o.Short)
		}
		if o.Takes == Nothing {
			given = append(given, s)
			continue
		}
		if tail := word[i+1:]; tail != "" {
			s.Value, s.Given = tail, true
		} else if o.Takes == Value {
			if len(rest) == 0 {
				return nil, 0, fmt.Errorf("option requires an argument -- '%c'", word[i])
			}
			s.Value, s.Given, used = rest[0], true, 1
		}
		return append(given, s), used, nil
	}
	return given, 0, nil
}

// BadUsage writes a mistake in the options as GNU tools do, and reports status.
func (c *Call) BadUsage(status int, err error) int {
	c.Errorf("%v", err)
	fmt.Fprintf(c.Stderr, "Try '%s --help' for more information.\n", c.Args[0])
	return status
}
