package env

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

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
	status := Child(ctx, c, operands)
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
