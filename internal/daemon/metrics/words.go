package metrics

import (
	"unicode/utf8"

	"egressd/event"
	"egressd/policy"
)

// The label values are the words of these types, from the first to the last of
// each; every other value is counted as "other", in the place after the last.
const (
	firstDoor, lastDoor     = event.DoorConnect, event.DoorKernel
	firstReason, lastReason = policy.ReasonNoPolicy, policy.ReasonInternal
	firstRCode, lastRCode   = event.NoError, event.Refused

	doorCount    = int(lastDoor-firstDoor) + 2
	verdictCount = 2
	reasonCount  = int(lastReason-firstReason) + 2
	rcodeCount   = int(lastRCode-firstRCode) + 2
)

// place reports where v, between first and last, is counted.
func place[T ~uint8](v, first, last T) int {
	if v < first || v > last {
		return int(last-first) + 1
	}
	return int(v - first)
}

// word is the label value of what is counted at i.
func word[T interface {
	~uint8
	String() string
}](i int, first, last T) string {
	if v := int(first) + i; v <= int(last) {
		return T(v).String()
	}
	return other
}

// plain reports whether an operator's name can be a label value.
func plain(name string) bool { return len(name) <= 128 && utf8.ValidString(name) }
