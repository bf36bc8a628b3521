package metrics

import (
	"unicode/utf8"

	"egressd/event"
	"egressd/policy"
)

// words are the closed lists of label values. The last word of each is "other".
type words struct {
	doors, reasons, rcodes []string
	door, reason, rcode    map[string]int
}

// verdicts are the values of the label verdict: the words of events.
const (
	verdictAllowed = iota
	verdictBlocked
	verdictCount
)

func verdictWord(v int) string {
	if v == verdictAllowed {
		return event.Allowed
	}
	return event.Blocked
}

func newWords() words {
	w := words{
		doors: []string{
			string(event.DoorConnect), string(event.DoorHTTP), string(event.DoorSOCKS5), string(event.DoorSOCKS4),
			string(event.DoorTransparent), string(event.DoorIntercept), string(event.DoorDNS), string(event.DoorKernel), other,
		},
		reasons: reasonWords(),
		rcodes:  []string{"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", other},
	}
	w.door, w.reason, w.rcode = index(w.doors), index(w.reasons), index(w.rcodes)
	return w
}

// reasonWords lists every reason that policy knows.
func reasonWords() []string {
	var all []string
	none := policy.Reason(255).String() // what it says of a reason that it does not know
	for r := range policy.Reason(255) {
		if word := r.String(); word != none {
			all = append(all, word)
		}
	}
	return append(all, other)
}

func index(list []string) map[string]int {
	m := make(map[string]int, len(list))
	for i, w := range list {
		m[w] = i
	}
	return m
}

// at reports the place of word, or that of "other".
func at(m map[string]int, word string) int {
	if i, ok := m[word]; ok {
		return i
	}
	return len(m) - 1
}

// plain reports whether an operator's name can be a label value.
func plain(name string) bool { return len(name) <= 128 && utf8.ValidString(name) }
