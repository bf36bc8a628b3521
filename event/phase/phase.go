// Package phase names the parts of a flow's time, by which one can tell whether the
// gate or the origin is slow:
//
//	start := took.Start()
//	d := policy.Decide(r)
//	took.Since(phase.Decision, 0, start)
//
// They are numbers for metrics, not events.
package phase

import "time"

// Phase is one part of a flow's time.
type Phase uint8

// The phases.
const (
	Decision    Phase = iota // one asking of the policy; nothing is waited for
	Dial                     // connecting to the origin or the upstream proxy, all addresses tried
	ClientTLS                // the TLS handshake with a client whose TLS is opened
	FirstByte                // of a tunnel: from its beginning to the origin's first byte
	FirstAnswer              // of an HTTP request: from its first byte to the head of the origin's response

	Count // how many there are
)

// Took hears how long one phase of a flow lasted. flow is its number in the events,
// 0 where none is known. It is called on the path of every flow and must be quick,
// without an allocation, and safe for concurrent use. Nil: nobody listens.
type Took func(p Phase, flow uint64, d time.Duration)

// Start reports when a phase begins; the zero time if nobody listens, since a look at
// the clock costs as much as a decision.
func (t Took) Start() time.Time {
	if t == nil {
		return time.Time{}
	}
	return time.Now()
}

// Since tells the time since start, which Start has reported.
func (t Took) Since(p Phase, flow uint64, start time.Time) {
	if t != nil {
		t(p, flow, time.Since(start))
	}
}

// Lasted tells d, unless that is zero: then nothing was waited for.
func (t Took) Lasted(p Phase, flow uint64, d time.Duration) {
	if t != nil && d != 0 {
		t(p, flow, d)
	}
}
