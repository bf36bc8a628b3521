package run

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// front makes a command of one that reads its options and then runs its
// operands: args is nil when it has done all that was to do.
func front(f func(*gnu.Work) (args []string)) command.Func {
	return func(ctx context.Context, c *command.Call) int {
		w := gnu.Begin(ctx, c)
		w.Usage = 125
		args := f(w)
		if st := w.End(); len(args) == 0 || st != 0 {
			return st
		}
		return child(ctx, c, args)
	}
}

func nohup(w *gnu.Work) []string {
	_, operands, ok := w.Options("COMMAND [ARG]...", "+")
	if ok && len(operands) == 0 {
		w.TryHelp("missing operand")
	}
	return operands
}

// nice runs at the only priority that there is.
func nice(w *gnu.Work) []string {
	if len(w.Args) > 1 {
		if a := w.Args[1]; len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9' {
			call := *w.Call
			call.Args = append([]string{w.Args[0], "-n", a[1:]}, w.Args[2:]...)
			w.Call = &call
		}
	}
	sets, operands, ok := w.Options("[OPTION] [COMMAND [ARG]...]", "+n,adjustment:")
	if !ok {
		return nil
	}
	for _, s := range sets {
		if _, err := strconv.Atoi(strings.TrimPrefix(s.Value, "+")); err != nil {
			w.Die(125, "invalid adjustment %s", gnu.Quote(s.Value))
			return nil
		}
	}
	switch {
	case len(operands) == 0 && len(sets) > 0:
		w.TryHelp("a command must be given with an adjustment")
	case len(operands) == 0:
		fmt.Fprintln(w.Out, 0)
	}
	return operands
}

func ionice(w *gnu.Work) []string {
	w.Usage = 1
	_, operands, ok := w.Options("[options] <command>", "+c,class: n,classdata: p,pid: P,pgid: u,uid: t,ignore")
	if ok && len(operands) == 0 {
		fmt.Fprintln(w.Out, "none: prio 0")
	}
	return operands
}

func setsid(w *gnu.Work) []string {
	w.Usage = 1
	_, operands, ok := w.Options("[options] <program> [arguments ...]", "+c,ctty f,fork w,wait")
	if ok && len(operands) == 0 {
		w.TryHelp("no command specified")
	}
	return operands
}

// stdbuf changes nothing: nobody can see how a command buffers here.
func stdbuf(w *gnu.Work) []string {
	sets, operands, ok := w.Options("OPTION... COMMAND", "+i,input: o,output: e,error:")
	switch {
	case !ok:
		return nil
	case len(operands) == 0:
		w.TryHelp("missing operand")
		return nil
	case len(sets) == 0:
		w.TryHelp("you must specify a buffering mode option")
		return nil
	}
	for _, s := range sets {
		if s.Value == "L" {
			if s.Name == "input" {
				w.TryHelp("line buffering stdin is meaningless")
				return nil
			}
			continue
		}
		if _, err := gnu.Size(s.Value, "EGkKMPTYZ0"); err != nil {
			w.Die(125, "invalid mode %s", gnu.Quote(s.Value))
			return nil
		}
	}
	return operands
}

// timeCommand is GNU time: what the run took, on the standard error.
func timeCommand(ctx context.Context, c *command.Call) int {
	w := gnu.Begin(ctx, c)
	w.Usage = 125
	sets, operands, ok := w.Options("[OPTION]... COMMAND [ARG]...", "+a,append f,format: o,output: p,portability q,quiet v,verbose")
	if !ok {
		return w.End()
	}
	if len(operands) == 0 {
		return w.Die(125, "missing program to run")
	}
	format := "%Uuser %Ssystem %E elapsed %P CPU (%Xavgtext+%Davgdata %Mmaxresident)k\n%Iinputs+%Ooutputs (%Fmajor+%Rminor)pagefaults %Wswaps"
	output, appending := "", false
	for _, s := range sets {
		switch s.Name {
		case "format":
			format = s.Value
		case "portability":
			format = "real %e\nuser %U\nsys %S"
		case "output":
			output = s.Value
		case "append":
			appending = true
		case "verbose":
			return w.Refuse("--verbose")
		}
	}
	begin := c.Now()
	status := child(ctx, c, operands)
	took := c.Now().Sub(begin)
	text := timeFormat(format, took, status, operands) + "\n"
	if status != 0 && !strings.Contains(format, "real %e") {
		text = fmt.Sprintf("Command exited with non-zero status %d\n", status) + text
	}
	if output == "" {
		fmt.Fprint(c.Stderr, text)
		return status
	}
	f, err := w.Create(output, appending)
	if err != nil {
		return w.Die(1, "cannot open %s: %s", output, command.Reason(err))
	}
	_, err = f.Write([]byte(text))
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return w.Die(1, "%s: %s", output, command.Reason(err))
	}
	return status
}

// timeFormat fills in a format; what is not measured here is 0.
func timeFormat(format string, took time.Duration, status int, args []string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		c := format[i]
		if (c != '%' && c != '\\') || i+1 == len(format) {
			b.WriteByte(c)
			continue
		}
		i++
		if c == '\\' {
			if at := strings.IndexByte("tn\\", format[i]); at >= 0 {
				b.WriteByte("\t\n\\"[at])
			} else {
				b.WriteString(format[i-1 : i+1])
			}
			continue
		}
		s := took.Seconds()
		switch format[i] {
		case '%':
			b.WriteByte('%')
		case 'C':
			b.WriteString(strings.Join(args, " "))
		case 'e':
			fmt.Fprintf(&b, "%.2f", s)
		case 'E':
			if s >= 3600 {
				fmt.Fprintf(&b, "%d:%02d:%02d", int(s)/3600, int(s)/60%60, int(s)%60)
			} else {
				fmt.Fprintf(&b, "%d:%05.2f", int(s)/60, s-float64(int(s)/60*60))
			}
		case 'U', 'S':
			b.WriteString("0.00")
		case 'P':
			b.WriteString("0%")
		case 'x':
			b.WriteString(strconv.Itoa(status))
		default:
			b.WriteByte('0')
		}
	}
	return b.String()
}
