package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// portRange is lo to hi, both included.
type portRange struct{ lo, hi uint16 }

// ports is a set of ports: sorted ranges that neither overlap nor touch.
type ports []portRange

var (
	webPorts = ports{{80, 80}, {443, 443}} // what a rule without ports means
	anyPort  = ports{{1, 65535}}
)

func (ps ports) has(p uint16) bool {
	for _, r := range ps {
		if r.lo <= p && p <= r.hi {
			return true
		}
	}
	return false
}

// String spells the set as a rule does.
func (ps ports) String() string {
	if len(ps) == 1 && ps[0] == anyPort[0] {
		return "*"
	}
	var b strings.Builder
	for i, r := range ps {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(r.lo)))
		if r.hi != r.lo {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(int(r.hi)))
		}
	}
	return b.String()
}

// parsePorts reads "443", "22,443", "8000-8100" or "*".
func parsePorts(s string) (ports, error) {
	if s == "*" {
		return anyPort, nil
	}
	var out ports
	for item := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(item, "-")
		lo, err := parsePort(first)
		if err != nil {
			return nil, err
		}
		hi := lo
		if isRange {
			if hi, err = parsePort(last); err != nil {
				return nil, err
			}
			if hi < lo {
				return nil, fmt.Errorf("port range %q runs backwards", item)
			}
		}
		out = append(out, portRange{lo, hi})
	}
	return mergePorts(out), nil
}

func mergePorts(ps ports) ports {
	slices.SortFunc(ps, func(a, b portRange) int { return int(a.lo) - int(b.lo) })
	out := ps[:1]
	for _, r := range ps[1:] {
		last := &out[len(out)-1]
		if int(r.lo) <= int(last.hi)+1 {
			last.hi = max(last.hi, r.hi)
			continue
		}
		out = append(out, r)
	}
	return out
}
