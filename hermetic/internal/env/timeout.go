package env

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

const errNotDir = syscall.ENOTDIR

// duration reads "1.5", "2m", "1h" or "1d" as sleep and timeout do.
func duration(s string) (time.Duration, bool) {
	unit := float64(time.Second)
	number := s
	if n := len(s); n > 0 {
		if at := strings.IndexByte("smhd", s[n-1]); at >= 0 {
			unit *= []float64{1, 60, 3600, 86400}[at]
			number = s[:n-1]
		}
	}
	f, err := strconv.ParseFloat(strings.TrimLeft(number, " \t"), 64)
	if err != nil && !math.IsInf(f, 0) || math.IsNaN(f) || f < 0 || strings.Contains(number, "_") {
		return 0, false
	}
	if f *= unit; f > math.MaxInt64/2 {
		return math.MaxInt64 / 2, true
	}
	return time.Duration(math.Ceil(f)), true
}

func sleep(ctx context.Context, c *command.Call) int {
	w := gnu.Begin(ctx, c)
	_, operands, ok := w.Options("NUMBER[SUFFIX]...", "+")
	if !ok {
		return w.End()
	}
	if len(operands) == 0 {
		return w.TryHelp("missing operand")
	}
	var total time.Duration
	for _, o := range operands {
		d, ok := duration(o)
		if !ok {
			w.Fault("invalid time interval %s", gnu.Quote(o))
			continue
		}
		total = min(total, math.MaxInt64/2) + d
	}
	if w.Status != 0 {
		fmt.Fprintf(c.Stderr, "Try '%s --help' for more information.\n", c.Args[0])
		return w.Status
	}
	t := time.NewTimer(total)
	defer t.Stop()
	select {
	case <-t.C:
		return 0
	case <-ctx.Done():
		return 143
	}
}

const timeoutSpec = "+,foreground k,kill-after: ,preserve-status s,signal: v,verbose"

// timeout runs a command for so long.
func timeout(ctx context.Context, c *command.Call) int {
	w := gnu.Begin(ctx, c)
	w.Usage = 125
	sets, operands, ok := w.Options("[OPTION] DURATION COMMAND [ARG]...", timeoutSpec)
	if !ok {
		return w.End()
	}
	signal, preserve, verbose := 15, false, false
	for _, s := range sets {
		switch s.Name {
		case "signal":
			n, ok := signalNumber(s.Value)
			if !ok {
				return w.TryHelp("%s: invalid signal", gnu.Quote(s.Value))
			}
			signal = n
		case "kill-after":
			if _, ok := duration(s.Value); !ok {
				return w.TryHelp("invalid time interval %s", gnu.Quote(s.Value))
			}
		case "preserve-status":
			preserve = true
		case "verbose":
			verbose = true
		}
	}
	if len(operands) < 2 {
		if len(operands) == 0 {
			return w.TryHelp("missing operand")
		}
		return w.TryHelp("missing operand after %s", gnu.Quote(operands[0]))
	}
	d, ok := duration(operands[0])
	if !ok {
		return w.TryHelp("invalid time interval %s", gnu.Quote(operands[0]))
	}
	status, late := within(ctx, c, d, operands[1:])
	switch {
	case !late:
		return status
	case verbose:
		c.Errorf("sending signal %s to command %s", signalName(signal), gnu.Quote(operands[1]))
	}
	if signal == 9 || preserve {
		return 128 + signal
	}
	return 124
}

// within runs args, and reports whether they were still running after d.
func within(ctx context.Context, c *command.Call, d time.Duration, args []string) (status int, late bool) {
	if d == 0 {
		return Child(ctx, c, args), false
	}
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	status = Child(limited, c, args)
	return status, limited.Err() != nil && ctx.Err() == nil
}

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
