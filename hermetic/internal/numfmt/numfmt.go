package numfmt

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/cut"
	"egressd/hermetic/internal/gnu"
)

type numfmtWant struct {
	from, to      string // none, auto, si, iec, iec-i
	fromUnit      int64
	toUnit        int64
	round         string
	suffix        string
	padding       int
	delim         int
	fields        []cut.Span
	header        int
	invalid       string
	before, after string // of --format
	prec          int
	zeros         bool
	end           byte
}

func numfmt(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [NUMBER]...", "d:,delimiter: ,field: ,format: ,from: ,from-unit: ,grouping ,header:: ,invalid: ,padding: ,round: ,suffix: ,to: ,to-unit: z,zero-terminated ,debug")
	if !ok {
		return
	}
	n := numfmtWant{from: "none", to: "none", fromUnit: 1, toUnit: 1, round: "from-zero", delim: -1, fields: []cut.Span{{Lo: 1, Hi: 1}}, invalid: "abort", prec: -1, end: '\n'}
	for _, o := range sets {
		if !n.set(w, o) {
			return
		}
	}
	if len(operands) > 0 {
		for _, o := range operands {
			if !n.line(w, []byte(o)) {
				return
			}
		}
		return
	}
	w.EachLine(nil, n.end, func(line []byte) bool {
		text := bytes.TrimSuffix(line, []byte{n.end})
		if n.header > 0 {
			n.header--
			w.Out.Write(text)
			w.Out.WriteByte(n.end)
			return true
		}
		return n.line(w, text)
	})
}

func (n *numfmtWant) set(w *gnu.Work, o command.Set) bool {
	choice := func(to *string, of ...string) bool {
		word, ok := gnu.Word(o.Value, of...)
		if !ok {
			w.TryHelp("invalid argument %s for ‘--%s’\nValid arguments are:\n  - ‘%s’", gnu.Quote(o.Value), o.Name, strings.Join(of, "’\n  - ‘"))
		}
		*to = word
		return ok
	}
	unit := func(to *int64) bool {
		v, err := gnu.Size(strings.TrimSuffix(o.Value, "i"), "KMGTPEZY")
		if err == nil && v > 0 {
			if !strings.HasSuffix(o.Value, "i") && strings.Trim(o.Value, "0123456789") != "" {
				f, _ := number(o.Value, "si")
				v = int64(f)
			}
			*to = v
			return true
		}
		w.Die(1, "invalid unit size: %s", gnu.Quote(o.Value))
		return false
	}
	switch o.Name {
	case "delimiter":
		if len(o.Value) > 1 {
			w.Die(1, "the delimiter must be a single character")
			return false
		}
		n.delim = int(append([]byte(o.Value), 0)[0])
	case "field":
		n.fields = cut.Spans(w, o.Value, true)
		if o.Value == "-" {
			w.Status, n.fields = 0, []cut.Span{{Lo: 1, Hi: math.MaxInt}}
		}
		return n.fields != nil
	case "format":
		return n.setFormat(w, o.Value)
	case "from":
		return choice(&n.from, "none", "auto", "si", "iec", "iec-i")
	case "to":
		return choice(&n.to, "none", "si", "iec", "iec-i")
	case "from-unit":
		return unit(&n.fromUnit)
	case "to-unit":
		return unit(&n.toUnit)
	case "round":
		return choice(&n.round, "up", "down", "from-zero", "towards-zero", "nearest")
	case "invalid":
		return choice(&n.invalid, "abort", "fail", "warn", "ignore")
	case "header":
		n.header = 1
		if o.Given {
			v, err := strconv.ParseUint(o.Value, 10, 31)
			if err != nil || v == 0 {
				w.Die(1, "invalid header value %s", gnu.Quote(o.Value))
				return false
			}
			n.header = int(v)
		}
	case "padding":
		v, err := strconv.Atoi(o.Value)
		if err != nil || v == 0 || v > 1<<20 || v < -1<<20 {
			w.Die(1, "invalid padding value %s", gnu.Quote(o.Value))
			return false
		}
		n.padding = v
	case "suffix":
		n.suffix = o.Value
	case "zero-terminated":
		n.end = 0
	}
	return true
}

// setFormat reads "%'10.2f" with text around it.
func (n *numfmtWant) setFormat(w *gnu.Work, s string) bool {
	at := strings.IndexByte(s, '%')
	end := strings.IndexByte(s, 'f')
	if at < 0 || end < at {
		w.Die(1, "format %s has no %% directive", gnu.Quote(s))
		return false
	}
	spec := s[at+1 : end]
	n.before, n.after = s[:at], s[end+1:]
	spec = strings.TrimLeft(spec, "'")
	n.zeros = strings.HasPrefix(spec, "0")
	width, prec, point := strings.Cut(spec, ".")
	if point {
		n.prec, _ = strconv.Atoi(prec)
	}
	if width != "" {
		v, err := strconv.Atoi(width)
		if err != nil || v > 1<<20 || v < -1<<20 || n.prec > 1<<10 {
			w.Die(1, "invalid format %s, directive must be %%[0]['][-][N][.][N]f", gnu.Quote(s))
			return false
		}
		n.padding = v
	}
	return true
}

func (n *numfmtWant) line(w *gnu.Work, text []byte) bool {
	var out []byte
	rest := string(text)
	for i := 1; ; i++ {
		lead := ""
		field, after, more := rest, "", false
		if n.delim >= 0 {
			field, after, more = strings.Cut(rest, string([]byte{byte(n.delim)}))
		} else {
			trimmed := strings.TrimLeft(rest, " \t")
			lead = rest[:len(rest)-len(trimmed)]
			field = trimmed
			if at := strings.IndexAny(trimmed, " \t"); at >= 0 {
				field, after, more = trimmed[:at], trimmed[at:], true
			}
		}
		if n.wants(i) {
			made, ok := n.convert(w, field, lead, i)
			if !ok {
				w.Out.Write(out)
				return false
			}
			out = append(out, made...)
		} else {
			out = append(out, lead+field...)
		}
		if !more {
			break
		}
		if n.delim >= 0 {
			out = append(out, byte(n.delim))
		}
		rest = after
	}
	w.Out.Write(append(out, n.end))
	return w.Ctx.Err() == nil
}

func (n *numfmtWant) wants(i int) bool {
	for _, s := range n.fields {
		if i >= s.Lo && i <= s.Hi {
			return true
		}
	}
	return false
}

// convert is one field; a bad one is as --invalid says.
func (n *numfmtWant) convert(w *gnu.Work, field, lead string, i int) (string, bool) {
	plain := strings.TrimSuffix(field, n.suffix)
	v, err := number(plain, n.from)
	if err != "" {
		if n.invalid != "ignore" {
			w.Complain("%s", strings.ReplaceAll(err, "%s", gnu.Quote(plain)))
		}
		if n.invalid == "abort" || n.invalid == "fail" {
			w.Status = 2
		}
		return lead + field, n.invalid != "abort"
	}
	v = v * float64(n.fromUnit) / float64(n.toUnit)
	text := n.human(v, decimals(plain)) + n.suffix
	pad := n.padding
	if pad == 0 && lead != "" && n.delim < 0 {
		pad = len(lead) + len(field)
		if i > 1 {
			pad--
			lead = lead[:1]
		} else {
			lead = ""
		}
	} else if n.delim < 0 && i > 1 && lead != "" {
		lead = lead[:1]
	}
	if fill := strings.Repeat(" ", max(0, max(pad, -pad)-len(text))); pad < 0 {
		text += fill
	} else if n.zeros {
		text = strings.Repeat("0", len(fill)) + text
	} else {
		text = fill + text
	}
	return lead + n.before + text + n.after, true
}

func decimals(s string) int {
	if strings.Trim(s, "-.0123456789") != "" {
		return 0 // a suffix moves the point
	}
	_, frac, _ := strings.Cut(s, ".")
	return len(frac) - len(strings.TrimLeft(frac, "0123456789"))
}

// number reads a number with a suffix as scale has them; why is the complaint.
func number(s, scale string) (v float64, why string) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' || i == 0 && s[i] == '-') {
		i++
	}
	f, err := strconv.ParseFloat(s[:i], 64)
	if err != nil {
		return 0, "invalid number: %s"
	}
	rest := s[i:]
	if rest == "" {
		return f, ""
	}
	power := strings.IndexByte("KMGTPEZY", rest[0]) + 1
	if rest[0] == 'k' {
		power = 1
	}
	switch {
	case power == 0:
		return 0, "invalid suffix in input: %s"
	case scale == "none":
		return 0, "rejecting suffix in input: %s (consider using --from)"
	}
	base, rest := 1000.0, rest[1:]
	hasI := strings.HasPrefix(rest, "i")
	if scale == "iec" || scale == "iec-i" || scale == "auto" && hasI {
		base = 1024
	}
	if scale == "iec-i" && !hasI {
		return 0, "missing 'i' suffix in input: %s (e.g Ki/Mi/Gi)"
	}
	if hasI && (scale == "auto" || scale == "iec-i") {
		rest = rest[1:]
	}
	if rest != "" {
		return 0, "invalid suffix in input %s: " + gnu.Quote(rest)
	}
	return f * math.Pow(base, float64(power)), ""
}

func (n *numfmtWant) rounded(v float64) float64 {
	switch n.round {
	case "up":
		return math.Ceil(v)
	case "down":
		return math.Floor(v)
	case "towards-zero":
		return math.Trunc(v)
	case "nearest":
		return math.Round(v)
	}
	return math.Copysign(math.Ceil(math.Abs(v)), v)
}

// human writes v in the scale of --to.
func (n *numfmtWant) human(v float64, given int) string {
	fixed := func(v float64, prec int) string {
		scale := math.Pow(10, float64(prec))
		if scaled := v * scale; math.Abs(scaled) < 1e15 {
			v = n.rounded(scaled) / scale
		}
		return new(big.Float).SetFloat64(v).Text('f', prec)
	}
	if n.to == "none" {
		prec := given
		if n.prec >= 0 {
			prec = n.prec
		}
		return fixed(v, prec)
	}
	base, power := 1000.0, 0
	if n.to != "si" {
		base = 1024
	}
	for math.Abs(v) >= base && power < 8 {
		v /= base
		power++
	}
	prec := 0
	switch {
	case n.prec >= 0:
		prec = n.prec
	case power > 0 && math.Abs(v) < 10:
		prec = 1
	}
	scale := math.Pow(10, float64(prec))
	r := n.rounded(v*scale) / scale
	if math.Abs(r) >= base && power < 8 {
		r /= base
		power++
		if n.prec < 0 {
			prec = 1
		}
	} else if n.prec < 0 && prec == 1 && math.Abs(r) >= 10 {
		prec, r = 0, n.rounded(v)
	}
	if power == 0 && n.prec < 0 {
		prec = 0
	}
	text := fmt.Sprintf("%.*f", prec, r)
	if power > 0 {
		text += "KMGTPEZY"[power-1 : power]
		if n.to == "iec-i" {
			text += "i"
		}
	}
	return text
}
