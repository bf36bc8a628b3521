package env

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

const envSpec = "+i,ignore-environment 0,null u,unset: C,chdir: S,split-string: v,debug ,block-signal:: ,default-signal:: ,ignore-signal:: ,list-signal-handling"

// env runs a command in a changed environment, or prints the environment.
func env(ctx context.Context, c *command.Call) int {
	e := &envCall{Work: gnu.Begin(ctx, c), vars: slices.Clone(c.Env), end: "\n", dir: c.Dir}
	e.Usage = 125
	if args := e.read(c.Args[1:]); args != nil {
		if st := e.End(); st != 0 {
			return st
		}
		next := c.With(c.Args, nil, nil, nil)
		next.Env, next.Dir = e.vars, e.dir
		if e.dirChanged {
			next.Env = WithVar(next.Env, "PWD", e.dir)
		}
		return Child(ctx, next, args)
	}
	return e.End()
}

type envCall struct {
	*gnu.Work
	vars       []string
	end        string
	dir        string
	dirChanged bool
	null       bool
}

// read takes options and assignments; nil: there is no command to run.
func (e *envCall) read(args []string) []string {
	args, ok := e.splitWords(args)
	if !ok {
		return nil
	}
	call := *e.Call
	call.Args = append([]string{e.Args[0]}, args...)
	call2 := *e.Work
	call2.Call = &call
	sets, rest, ok := call2.Options("[OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]", envSpec)
	if !ok {
		e.Status = call2.Status
		return nil
	}
	if !e.options(sets) {
		return nil
	}
	if len(rest) > 0 && rest[0] == "-" {
		e.vars, rest = nil, rest[1:]
	}
	for len(rest) > 0 && strings.Contains(rest[0], "=") {
		name, value, _ := strings.Cut(rest[0], "=")
		if name == "" {
			e.Die(125, "cannot set %s: Invalid argument", gnu.Quote(""))
			return nil
		}
		e.vars = WithVar(e.vars, name, value)
		rest = rest[1:]
	}
	return e.finish(rest)
}

func (e *envCall) finish(rest []string) []string {
	switch {
	case len(rest) == 0 && e.dirChanged:
		e.TryHelp("must specify command with --chdir (-C)")
	case len(rest) > 0 && e.null:
		e.TryHelp("cannot specify --null (-0) with command")
	case len(rest) > 0:
		return rest
	default:
		for _, kv := range e.vars {
			fmt.Fprint(e.Out, kv, e.end)
		}
	}
	return nil
}

func (e *envCall) options(sets []command.Set) bool {
	for _, s := range sets {
		switch s.Name {
		case "ignore-environment":
			e.vars = nil
		case "null":
			e.end, e.null = "\x00", true
		case "chdir":
			fi, err := e.FS.Stat(e.Path(s.Value))
			if err == nil && !fi.IsDir() {
				err = errNotDir
			}
			dir := s.Value
			if err == nil {
				dir, err = e.FS.Resolve(e.Path(s.Value))
			}
			if err != nil {
				e.Die(125, "cannot change directory to %s: %s", gnu.QuoteShell(s.Value), command.Reason(err))
				return false
			}
			e.dir, e.dirChanged = dir, true
		case "debug", "list-signal-handling":
			e.Refuse("--" + s.Name)
			return false
		}
	}
	for _, s := range sets {
		if s.Name != "unset" {
			continue
		}
		if s.Value == "" || strings.Contains(s.Value, "=") {
			e.Die(125, "cannot unset %s: Invalid argument", gnu.Quote(s.Value))
			return false
		}
		e.vars = slices.DeleteFunc(e.vars, func(kv string) bool { return strings.HasPrefix(kv, s.Value+"=") })
	}
	return true
}

// WithVar is env with one variable set; env itself stays.
func WithVar(env []string, name, value string) []string {
	for i, kv := range env {
		if strings.HasPrefix(kv, name+"=") {
			env = slices.Clone(env)
			env[i] = name + "=" + value
			return env
		}
	}
	return append(slices.Clip(env), name+"="+value)
}

// splitWords replaces -S by the words of its value.
func (e *envCall) splitWords(args []string) ([]string, bool) {
	for i, a := range args {
		if a == "--" || !strings.HasPrefix(a, "-") || a == "-" {
			return args, true
		}
		value, rest := "", args[i+1:]
		if v, ok := strings.CutPrefix(a, "--split-string="); ok {
			value = v
		} else if at := strings.IndexByte(a, 'S'); !strings.HasPrefix(a, "--") && at > 0 && strings.Trim(a[1:at], "iv0") == "" {
			value = a[at+1:]
			if value == "" && len(rest) > 0 {
				value, rest = rest[0], rest[1:]
			}
			if at > 1 {
				args = append(slices.Clone(args[:i]), append([]string{a[:at]}, args[i:]...)...)
				i++
			}
		} else {
			if (a == "-u" || a == "-C" || a == "--unset" || a == "--chdir") && i+1 < len(args) {
				tail, ok := e.splitWords(args[i+2:])
				return append(slices.Clone(args[:i+2]), tail...), ok
			}
			continue
		}
		words, problem := envWords(value, e.Call)
		if problem != "" {
			e.Die(125, "%s", problem)
			return nil, false
		}
		return append(append(slices.Clone(args[:i]), words...), rest...), true
	}
	return args, true
}

// envWords cuts the value of -S as env does: quotes, backslashes and ${NAME}.
func envWords(s string, c *command.Call) (words []string, problem string) {
	var word strings.Builder
	in, quote := false, byte(0)
	flush := func() {
		if in {
			words = append(words, word.String())
			word.Reset()
			in = false
		}
	}
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case ch == quote && quote != 0:
			quote = 0
		case quote == 0 && (ch == '\'' || ch == '"'):
			quote, in = ch, true
		case quote == 0 && strings.IndexByte(" \t\n\v\f\r", ch) >= 0:
			flush()
		case quote == 0 && ch == '#' && !in:
			return words, ""
		case ch == '\\':
			if i++; i == len(s) {
				return nil, "invalid backslash at end of string in -S"
			}
			if quote == '\'' && s[i] != '\\' && s[i] != '\'' {
				word.WriteByte('\\')
				word.WriteByte(s[i])
				continue
			}
			switch esc := s[i]; {
			case esc == 'c' && quote == 0:
				flush()
				return words, ""
			case esc == '_' && quote == 0:
				flush()
				continue
			default:
				out, ok := envEscape(esc)
				if !ok {
					return nil, fmt.Sprintf("invalid sequence '\\%c' in -S", esc)
				}
				word.WriteByte(out)
			}
			in = true
		case ch == '$' && quote != '\'':
			end := strings.IndexByte(s[i:], '}')
			if !strings.HasPrefix(s[i:], "${") || end < 3 {
				return nil, fmt.Sprintf("only ${VARNAME} expansion is supported, error at: %s", s[i:])
			}
			word.WriteString(c.Getenv(s[i+2 : i+end]))
			in, i = true, i+end
		default:
			word.WriteByte(ch)
			in = true
		}
	}
	if quote != 0 {
		return nil, "no terminating quote in -S string"
	}
	flush()
	return words, ""
}

func envEscape(c byte) (byte, bool) {
	from, to := "fnrtv_#$\\\"'", "\f\n\r\t\v #$\\\"'"
	at := strings.IndexByte(from, c)
	if at < 0 {
		return 0, false
	}
	return to[at], true
}

func printenv(w *gnu.Work) {
	w.Usage = 2
	sets, names, ok := w.Options("[OPTION]... [VARIABLE]...", "+0,null")
	if !ok {
		return
	}
	end := "\n"
	if len(sets) > 0 {
		end = "\x00"
	}
	if len(names) == 0 {
		for _, kv := range w.Env {
			_, _ = io.WriteString(w.Out, kv+end)
		}
	}
	for _, name := range names {
		at := slices.IndexFunc(w.Env, func(kv string) bool {
			n, _, _ := strings.Cut(kv, "=")
			return n == name && name != ""
		})
		if at < 0 {
			w.Status = 1
			continue
		}
		_, value, _ := strings.Cut(w.Env[at], "=")
		_, _ = io.WriteString(w.Out, value+end)
	}
}
