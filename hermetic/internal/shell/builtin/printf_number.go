package builtin

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/number"
)

func (p *printfRun) signed(n int64, sp spec) {
	s := strconv.FormatInt(n, 10)
	neg := n < 0
	s = strings.TrimPrefix(s, "-")
	s = sp.precise(s)
	switch {
	case neg:
		s = "-" + s
	case strings.Contains(sp.flags, "+"):
		s = "+" + s
	case strings.Contains(sp.flags, " "):
		s = " " + s
	}
	p.pad(s, sp, sp.zero() && !sp.hasPrec)
}

func (sp spec) precise(s string) string {
	if !sp.hasPrec {
		return s
	}
	if sp.prec == 0 && s == "0" {
		return ""
	}
	return number.ZeroPad(s, sp.prec)
}

func (p *printfRun) unsigned(n uint64, c byte, sp spec) {
	base := map[byte]int{'u': 10, 'o': 8, 'x': 16, 'X': 16}[c]
	s := strconv.FormatUint(n, base)
	if c == 'X' {
		s = strings.ToUpper(s)
	}
	s = sp.precise(s)
	if strings.Contains(sp.flags, "#") && n != 0 {
		switch c {
		case 'o':
			if s[0] != '0' {
				s = "0" + s
			}
		case 'x', 'X':
			s = "0" + string(c) + s
		}
	}
	p.pad(s, sp, sp.zero() && !sp.hasPrec)
}

// integer reads a number as printf does: C's forms, or a character after a
// quote; a mistake is told and the rest of the number used.
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

func (p *printfRun) float(a string, c byte, sp spec) {
	var v float64
	if a != "" && (a[0] == '\'' || a[0] == '"') {
		n, _ := p.integer(a)
		v = float64(n)
	} else if a != "" {
		var err error
		t := strings.TrimLeft(a, " \t\n")
		v, err = strconv.ParseFloat(t, 64)
		if err != nil && !math.IsInf(v, 0) || strings.ContainsAny(t, "_") {
			v = longestFloat(t)
			p.sh.Errorf("printf: %s: invalid number", a)
			p.status = 1
		}
	}
	p.pad(formatFloat(v, c, sp), sp, sp.zero() && !math.IsInf(v, 0) && !math.IsNaN(v))
}

func longestFloat(s string) float64 {
	for n := min(len(s), 400); n > 0; n-- {
		if v, err := strconv.ParseFloat(s[:n], 64); err == nil {
			return v
		}
	}
	return 0
}

func formatFloat(v float64, c byte, sp spec) string {
	verb := "%"
	for _, f := range sp.flags {
		if f == '+' || f == ' ' || f == '#' {
			verb += string(f)
		}
	}
	prec := 6
	if sp.hasPrec {
		prec = min(sp.prec, 1000)
	}
	lower := c | 0x20
	var s string
	switch {
	case math.IsInf(v, 0), math.IsNaN(v):
		s = strings.ToLower(fmt.Sprintf("%f", v))
		s = strings.TrimPrefix(s, "+")
		if strings.Contains(sp.flags, "+") && v > 0 {
			s = "+" + s
		}
	case lower == 'a':
		s = fmt.Sprintf(verb+"x", v)
	case lower == 'g' && prec == 0:
		s = fmt.Sprintf(verb+".1g", v)
	default:
		s = fmt.Sprintf(verb+"."+strconv.Itoa(prec)+string(lower), v)
		if lower == 'g' && !strings.Contains(sp.flags, "#") {
			s = cFloat(v, prec, verb)
		}
	}
	if c < 'a' {
		s = strings.ToUpper(s)
	}
	return s
}

// cFloat is %g as C has it: exponents below -4 or not below the precision.
func cFloat(v float64, prec int, verb string) string {
	e := fmt.Sprintf("%.*e", prec-1, v)
	i := strings.LastIndexByte(e, 'e')
	exp, _ := strconv.Atoi(e[i+1:])
	var s string
	if exp < -4 || exp >= prec {
		s = fmt.Sprintf(verb+"."+strconv.Itoa(prec-1)+"e", v)
		m, x, _ := strings.Cut(s, "e")
		if strings.Contains(m, ".") {
			m = strings.TrimRight(strings.TrimRight(m, "0"), ".")
		}
		return m + "e" + x
	}
	s = fmt.Sprintf(verb+"."+strconv.Itoa(max(prec-1-exp, 0))+"f", v)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
