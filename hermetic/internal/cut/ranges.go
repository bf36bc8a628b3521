package cut

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// Span is a range of positions, from 1, both ends in.
type Span struct{ Lo, Hi int }

// Spans reads a list such as "1,3-5,7-" into sorted ranges that do not touch.
// It complains and reports nil when the list is wrong; field says whether
// messages speak of fields.
func Spans(w *gnu.Work, list string, field bool) []Span {
	whats := "byte/character"
	if field {
		whats = "field"
	}
	zero := whats + " positions are numbered from 1"
	if field {
		zero = "fields are numbered from 1"
	}
	var out []Span
	for _, item := range strings.FieldsFunc(strings.NewReplacer(",", ", ", " ", ", ", "\t", ", ").Replace(list)+" ", func(r rune) bool { return r == ',' }) {
		lo, hi, dash := strings.Cut(strings.Trim(item, " "), "-")
		s := Span{1, math.MaxInt}
		for _, end := range []struct {
			text string
			to   *int
		}{{lo, &s.Lo}, {hi, &s.Hi}} {
			if end.text == "" {
				continue
			}
			n, err := strconv.ParseUint(end.text, 10, 63)
			if err != nil {
				return badSpan(w, end.text, whats, field)
			}
			*end.to = int(n)
		}
		if !dash {
			s.Hi = s.Lo
		}
		switch {
		case s.Lo == 0 || !dash && lo == "":
			w.TryHelp("%s", zero)
			return nil
		case dash && lo == "" && hi == "":
			w.TryHelp("invalid range with no endpoint: -")
			return nil
		case s.Hi < s.Lo:
			w.TryHelp("invalid decreasing range")
			return nil
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		w.TryHelp("%s", zero)
		return nil
	}
	return joinSpans(out)
}

func badSpan(w *gnu.Work, text, whats string, field bool) []Span {
	digits := strings.TrimLeft(text, "0123456789")
	switch {
	case digits == "":
		if whats == "field" {
			whats = "field number"
		} else {
			whats += " offset"
		}
		w.TryHelp("%s %s is too large", whats, gnu.Quote(text))
	case strings.HasPrefix(digits, "-"):
		if field {
			w.TryHelp("invalid field range")
		} else {
			w.TryHelp("invalid byte or character range")
		}
	case field:
		w.TryHelp("invalid field value %s", gnu.Quote(digits))
	default:
		w.TryHelp("invalid byte/character position %s", gnu.Quote(digits))
	}
	return nil
}

func joinSpans(in []Span) []Span {
	slices.SortFunc(in, func(a, b Span) int { return a.Lo - b.Lo })
	out := in[:1]
	for _, s := range in[1:] {
		if last := &out[len(out)-1]; s.Lo <= last.Hi {
			last.Hi = max(last.Hi, s.Hi)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// complement is every position that spans leave out.
func complement(in []Span) []Span {
	var out []Span
	next := 1
	for _, s := range in {
		if s.Lo > next {
			out = append(out, Span{next, s.Lo - 1})
		}
		if s.Hi == math.MaxInt {
			return out
		}
		next = s.Hi + 1
	}
	return append(out, Span{next, math.MaxInt})
}
