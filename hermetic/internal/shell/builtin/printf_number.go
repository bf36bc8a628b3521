package builtin

import (
	"math"
	"strconv"
	"strings"

	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/shell/chars"
)

// integer reads a number as printf does: C's forms, or a character after a
// quote; a mistake is reported and the beginning of the number is used.
func (p *printfRun) integer(a string) (int64, bool) {
	if a == "" {
		return 0, true
	}
	if a[0] == '\'' || a[0] == '"' {
		if len(a) == 1 {
			return 0, true
		}
		r, size := chars.First(a[1:])
		if size == 1 && a[1] >= 0x80 {
			return int64(a[1]), true
		}
		return int64(r), true
	}
	t := strings.TrimLeft(a, " \t\n")
	neg := false
	digitsText := t
	if t != "" && (t[0] == '-' || t[0] == '+') {
		neg, digitsText = t[0] == '-', t[1:]
	}
	base := 10
	switch {
	case strings.HasPrefix(digitsText, "0x"), strings.HasPrefix(digitsText, "0X"):
		base, digitsText = 16, digitsText[2:]
	case len(digitsText) > 1 && digitsText[0] == '0':
		base, digitsText = 8, digitsText[1:]
	}
	end := 0
	for end < len(digitsText) {
		if _, err := strconv.ParseUint(digitsText[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	n, err := strconv.ParseUint("0"+digitsText[:end], base, 64)
	if end < len(digitsText) || end == 0 && base == 10 {
		if end < len(digitsText) && base == 8 && digitsText[end] >= '8' && digitsText[end] <= '9' {
			p.sh.Errorf("printf: %s: invalid octal number", a)
		} else {
			p.sh.Errorf("printf: %s: invalid number", a)
		}
		p.status = 1
	}
	if err != nil || !neg && n > math.MaxInt64 && base == 10 || neg && n > 1<<63 {
		p.sh.Errorf("printf: warning: %s: Numerical result out of range", a)
		p.status = 1
		if neg {
			return math.MinInt64, false
		}
		return math.MaxInt64, false
	}
	if neg {
		return -int64(n), true
	}
	return int64(n), true
}

// float reads a number with a fraction: a long double, as bash on x86 has it.
func (p *printfRun) float(a string) gnu.Float {
	if a == "" {
		return gnu.NewFloat(0)
	}
	if a[0] == '\'' || a[0] == '"' {
		n, _ := p.integer(a)
		return gnu.NewFloat(float64(n))
	}
	v, n := gnu.ParseFloat(a)
	if n < len(a) {
		p.sh.Errorf("printf: %s: invalid number", a)
		p.status = 1
	}
	return v
}
