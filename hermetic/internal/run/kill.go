package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// signals are the names of 1 to 31.
var signals = strings.Fields("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH POLL PWR SYS")

func signalNumber(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= 0 && n <= 64
	}
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if name == "EXIT" {
		return 0, true
	}
	at := slices.Index(signals, name)
	return at + 1, at >= 0
}

func signalName(n int) string {
	if n >= 1 && n <= len(signals) {
		return signals[n-1]
	}
	return strconv.Itoa(n)
}

// kill finds no process: there is none but the shell, whose kill is a builtin.
func kill(w *gnu.Work) {
	args := w.Args[1:]
	if len(args) == 0 {
		w.TryHelp("no process ID specified")
		return
	}
	switch a := args[0]; {
	case a == "--help" || a == "--version":
		w.Options("[-s SIGNAL | -SIGNAL] PID...", "")
		return
	case a == "-l" || a == "--list" || a == "-L" || a == "-t" || a == "--table":
		listSignals(w, args[1:])
		return
	case a == "--":
		args = args[1:]
	case (a == "-s" || a == "-n" || a == "--signal") && len(args) > 1:
		if _, ok := signalNumber(args[1]); !ok {
			w.TryHelp("%s: invalid signal", gnu.Quote(args[1]))
			return
		}
		args = args[2:]
	case strings.HasPrefix(a, "-"):
		if _, ok := signalNumber(strings.TrimPrefix(strings.TrimPrefix(a, "-s"), "-")); !ok {
			w.TryHelp("%s: invalid signal", gnu.Quote(a[1:]))
			return
		}
		args = args[1:]
	}
	if len(args) == 0 {
		w.TryHelp("no process ID specified")
		return
	}
	for _, a := range args {
		if _, err := strconv.Atoi(a); err != nil {
			w.Fault("%s: invalid process id", gnu.Quote(a))
			continue
		}
		w.Fault("%s: No such process", gnu.Quote(a))
	}
}

func listSignals(w *gnu.Work, names []string) {
	if len(names) == 0 {
		for _, s := range signals {
			fmt.Fprintln(w.Out, s)
		}
	}
	for _, s := range names {
		n, ok := signalNumber(s)
		if num, err := strconv.Atoi(s); err == nil && num > 128 {
			n, ok = num-128, num-128 <= len(signals)
		}
		if !ok {
			w.Fault("%s: invalid signal", gnu.Quote(s))
			continue
		}
		if _, err := strconv.Atoi(s); err == nil {
			fmt.Fprintln(w.Out, signalName(n))
		} else {
			fmt.Fprintln(w.Out, n)
		}
	}
}
