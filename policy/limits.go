package policy

import (
	"math"
	"strconv"
)

// Limits bounds one gate. Zero fields take the engine's (bounded) defaults,
// see [DefaultLimits].
type Limits struct {
	Connections          int
	ConnectionsPerClient int     // a client is a source address; zero: as Connections
	RatePerSecond        float64 // new flows a second
	RatePerClient        float64 // new flows a second of one client; zero: as RatePerSecond
	BytesPerFlow         int64
	MaxDurationSeconds   int64
	IdleTimeoutSeconds   int64
	HeadBytes            int   // an HTTP head, a SOCKS request
	HelloBytes           int   // a TLS ClientHello
	HeadTimeoutSeconds   int64 // from the connection, or the request before, to the end of its head
	HelloTimeoutSeconds  int64 // from our "yes" to the end of the ClientHello
}

// DefaultLimits is what zero fields mean. It suits agents: event streams and
// WebSockets live for days and may be quiet for an hour.
func DefaultLimits() Limits {
	return Limits{
		Connections: 16384, RatePerSecond: 50000,
		BytesPerFlow: 1 << 40, MaxDurationSeconds: 7 * 24 * 3600, IdleTimeoutSeconds: 3600,
		HeadBytes: 32 << 10, HelloBytes: 64 << 10, HeadTimeoutSeconds: 15, HelloTimeoutSeconds: 15,
	}
}

// Implementation constants: ten years, so that seconds always fit a
// time.Duration; and the longest that a client may take to say what it wants.
const (
	maxSeconds       = 10 * 365 * 24 * 3600
	maxSpeechSeconds = 3600
	maxRate          = 1e9
)

// limitKey is one field of Limits as policy text knows it.
type limitKey struct {
	name  string
	most  int64             // the largest whole number
	field func(*Limits) any // *int, *int64 or *float64
}

// limitKeys is total: TestLimitKeys counts the fields.
func limitKeys() []limitKey {
	return []limitKey{
		{"connections", math.MaxInt32, func(l *Limits) any { return &l.Connections }},
		{"connections_per_client", math.MaxInt32, func(l *Limits) any { return &l.ConnectionsPerClient }},
		{"rate_per_second", 0, func(l *Limits) any { return &l.RatePerSecond }},
		{"rate_per_client", 0, func(l *Limits) any { return &l.RatePerClient }},
		{"bytes_per_flow", math.MaxInt64, func(l *Limits) any { return &l.BytesPerFlow }},
		{"max_duration_seconds", maxSeconds, func(l *Limits) any { return &l.MaxDurationSeconds }},
		{"idle_timeout_seconds", maxSeconds, func(l *Limits) any { return &l.IdleTimeoutSeconds }},
		{"head_bytes", 1 << 20, func(l *Limits) any { return &l.HeadBytes }},
		{"hello_bytes", 1 << 20, func(l *Limits) any { return &l.HelloBytes }},
		{"head_timeout_seconds", maxSpeechSeconds, func(l *Limits) any { return &l.HeadTimeoutSeconds }},
		{"hello_timeout_seconds", maxSpeechSeconds, func(l *Limits) any { return &l.HelloTimeoutSeconds }},
	}
}

// settle fills the zero fields of l from other.
func (l *Limits) settle(other Limits) {
	for _, k := range limitKeys() {
		switch have := k.field(l).(type) {
		case *int:
			*have = firstSet(*have, *k.field(&other).(*int))
		case *int64:
			*have = firstSet(*have, *k.field(&other).(*int64))
		case *float64:
			*have = firstSet(*have, *k.field(&other).(*float64))
		}
	}
}

// stricter reports, field by field, the smaller bound of l and other. A field
// that neither sets stays zero; one that only one of them sets is compared with
// the default that the other means by zero.
func (l Limits) stricter(other Limits) Limits {
	def := DefaultLimits()
	for _, k := range limitKeys() {
		switch a := k.field(&l).(type) {
		case *int:
			*a = smaller(*a, *k.field(&other).(*int), *k.field(&def).(*int))
		case *int64:
			*a = smaller(*a, *k.field(&other).(*int64), *k.field(&def).(*int64))
		case *float64:
			*a = smaller(*a, *k.field(&other).(*float64), *k.field(&def).(*float64))
		}
	}
	return l
}

// lines spells what l sets as policy text, one line a field.
func (l Limits) lines() []string {
	var out []string
	for _, k := range limitKeys() {
		text := ""
		switch v := k.field(&l).(type) {
		case *int:
			text = strconv.Itoa(*v)
		case *int64:
			text = strconv.FormatInt(*v, 10)
		case *float64:
			text = strconv.FormatFloat(*v, 'f', -1, 64)
		}
		if text != "0" {
			out = append(out, k.name+": "+text)
		}
	}
	return out
}

// outOfRange names the fields that no policy file could hold.
func (l Limits) outOfRange() (names []string) {
	for _, k := range limitKeys() {
		ok := true
		switch v := k.field(&l).(type) {
		case *int:
			ok = *v >= 0 && int64(*v) <= k.most
		case *int64:
			ok = *v >= 0 && *v <= k.most
		case *float64:
			ok = *v >= 0 && *v <= maxRate
		}
		if !ok {
			names = append(names, k.name)
		}
	}
	return names
}

func firstSet[N int | int64 | float64](have, set N) N {
	if have == 0 {
		return set
	}
	return have
}

// smaller compares two bounds of which zero means def; a zero def (a bound
// that is derived from another one) means that zero is the wider.
func smaller[N int | int64 | float64](a, b, def N) N {
	switch {
	case a == b:
		return a
	case a == 0 && def == 0:
		return b
	case b == 0 && def == 0:
		return a
	}
	return min(firstSet(a, def), firstSet(b, def))
}
