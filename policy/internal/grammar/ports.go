package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Implementation constant: a range of at most this many ports is worth a
// listener each.
const maxListedRange = 64

// Range is Lo to Hi, both included.
type Range struct{ Lo, Hi uint16 }

// Ports is a set of ports: sorted ranges that neither overlap nor touch.
type Ports []Range

// What rules without ports mean, and *.
var (
	WebPorts = Ports{{80, 80}, {443, 443}} // what a rule without ports means
	AnyPort  = Ports{{1, 65535}}
)

// Has reports whether p is in the set.
func (ps Ports) Has(p uint16) bool {
	for _, r := range ps {
		if r.Lo <= p && p <= r.Hi {
			return true
		}
	}
	return false
}

// Each calls use with every port, ranges of more than maxListedRange left out
// whole.
func (ps Ports) Each(use func(uint16)) {
	for _, r := range ps {
		if int(r.Hi)-int(r.Lo) >= maxListedRange {
			continue
		}
		for port := int(r.Lo); port <= int(r.Hi); port++ {
			use(uint16(port))
		}
	}
}

// String spells the set as a rule does.
func (ps Ports) String() string {
	if len(ps) == 1 && ps[0] == AnyPort[0] {
		return "*"
	}
	var b strings.Builder
	for i, r := range ps {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(r.Lo)))
		if r.Hi != r.Lo {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(int(r.Hi)))
		}
	}
	return b.String()
}

// parsePorts reads "443", "22,443", "8000-8100" or "*".
func parsePorts(s string) (Ports, error) {
	if s == "*" {
		return AnyPort, nil
	}
	var out Ports
	for item := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(item, "-")
		lo, err := ParsePort(first)
		if err != nil {
			return nil, err
		}
		hi := lo
		if isRange {
			if hi, err = ParsePort(last); err != nil {
				return nil, err
			}
			if hi < lo {
				return nil, fmt.Errorf("port range %q runs backwards", item)
			}
		}
		out = append(out, Range{lo, hi})
	}
	return mergePorts(out), nil
}

func mergePorts(ps Ports) Ports {
	slices.SortFunc(ps, func(a, b Range) int { return int(a.Lo) - int(b.Lo) })
	out := ps[:1]
	for _, r := range ps[1:] {
		last := &out[len(out)-1]
		if int(r.Lo) <= int(last.Hi)+1 {
			last.Hi = max(last.Hi, r.Hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

// ParsePort reads 1 to 65535 in plain decimal: no sign, no leading zero.
func ParsePort(s string) (uint16, error) {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' || len(s) > 5 {
			return 0, fmt.Errorf("port %q is not a number from 1 to 65535", s)
		}
		n = n*10 + int(s[i]-'0')
	}
	switch {
	case s == "":
		return 0, errors.New("the port is empty")
	case s[0] == '0' && len(s) > 1:
		return 0, fmt.Errorf("port %q has a leading zero", s)
	case n == 0 || n > 65535:
		return 0, fmt.Errorf("port %q is not a number from 1 to 65535", s)
	}
	return uint16(n), nil
}
