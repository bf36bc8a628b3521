package shell

import (
	"fmt"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/state"
)

// timeClause is the keyword time. There are no processes to account for, so
// user and sys are zero.
func timeClause(sh *state.Shell, c *syntax.TimeClause) {
	start := sh.Session.Now()
	if c.Stmt != nil {
		stmt(sh, c.Stmt)
	} else {
		sh.Status = 0
	}
	took := sh.Session.Now().Sub(start)
	format := "\nreal\t%3lR\nuser\t%3lU\nsys\t%3lS"
	if c.PosixFormat {
		format = "real %2R\nuser %2U\nsys %2S"
	} else if v := sh.Vars.Lookup("TIMEFORMAT"); v != nil && v.IsSet {
		if format = v.Str; format == "" {
			return
		}
	}
	sh.ErrText(timeText(format, took) + "\n")
}

// timeText is $TIMEFORMAT with its escapes replaced.
func timeText(format string, took time.Duration) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		prec, long := 3, false
		if format[i] >= '0' && format[i] <= '9' && i+1 < len(format) {
			prec = min(int(format[i]-'0'), 3)
			i++
		}
		if format[i] == 'l' && i+1 < len(format) {
			long = true
			i++
		}
		d := took
		switch format[i] {
		case 'U', 'S':
			d = 0
		case 'P':
			b.WriteString("0.00")
			continue
		case 'R':
		default:
			b.WriteByte(format[i])
			continue
		}
		if long {
			fmt.Fprintf(&b, "%dm%.*fs", int(d.Minutes()), prec, d.Seconds()-60*float64(int(d.Minutes())))
		} else {
			fmt.Fprintf(&b, "%.*f", prec, d.Seconds())
		}
	}
	return b.String()
}
