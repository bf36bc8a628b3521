package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
)

// tracePrefix is the expanded $PS4.
func tracePrefix(sh *state.Shell) string {
	ps4 := sh.Vars.Get("PS4")
	if ps4 == "" {
		return ""
	}
	if strings.ContainsAny(ps4, "$`\\") {
		opts := sh.Options.Flags
		sh.Options.Flags &^= options.XTrace
		status := sh.Status
		ps4 = Prompt(sh, Quoted(sh, ps4))
		sh.Options.Flags, sh.Status = opts, status
	}
	return ps4
}

// Trace writes a line of set -x.
func Trace(sh *state.Shell, text string) {
	n := 2
	if v := sh.Vars.Lookup("BASH_XTRACEFD"); v != nil && v.IsSet {
		if fd := int(number.Leading(v.Str)); sh.FDs.Open[fd] != nil {
			n = fd
		}
	}
	sh.Stream(n).Write([]byte(tracePrefix(sh) + text + "\n")) //nolint:errcheck // a trace
}

// TraceArgs writes a command as set -x does, if that is on.
func TraceArgs(sh *state.Shell, _ *syntax.CallExpr, args []string) {
	if !sh.Options.On(options.XTrace) {
		return
	}
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = quote.IfNeeded(a)
	}
	Trace(sh, strings.Join(out, " "))
}
