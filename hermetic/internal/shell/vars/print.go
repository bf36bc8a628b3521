package vars

import (
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/quote"
)

// Declaration is a declare command that recreates a variable.
func Declaration(name string, v *Variable) string {
	s := "declare -" + strings.TrimPrefix(v.Flags(), "-")
	if v.Flags() == "-" {
		s = "declare --"
	}
	s += " " + name
	if v.Kind != Plain {
		if !v.IsSet && len(v.Values()) == 0 {
			return s
		}
		return s + "=" + ValueText(v)
	}
	if !v.IsSet {
		return s
	}
	return s + "=" + quote.Double(v.Str)
}

// ValueText is a value as set prints it.
func ValueText(v *Variable) string {
	switch v.Kind {
	case Indexed:
		parts := make([]string, len(v.List.Elems))
		for i, e := range v.List.Elems {
			parts[i] = "[" + strconv.FormatInt(e.At, 10) + "]=" + quote.Double(e.Val)
		}
		return "(" + strings.Join(parts, " ") + ")"
	case Assoc:
		var b strings.Builder
		b.WriteByte('(')
		for _, k := range v.Pairs.Keys() {
			b.WriteString("[" + quote.Key(k) + "]=" + quote.Double(v.Pairs.Vals[k]) + " ")
		}
		b.WriteByte(')')
		return b.String()
	}
	return quote.IfNeeded(v.Str)
}
