package policy

import (
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Limits bounds one gate. Zero fields take the engine's (bounded) defaults,
// see [DefaultLimits].
type Limits struct {
	Connections          int
	ConnectionsPerClient int     // a client is a source address
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
// WebSockets live for days and may be quiet for an hour. One client gets half of the
// connections at most, so that no agent alone keeps the others of a gate out.
func DefaultLimits() Limits {
	return Limits{
		Connections: 16384, ConnectionsPerClient: 8192, RatePerSecond: 50000,
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
type limitKey interface {
	key() string
	settle(l, other *Limits)                         // fills the field of l from other when l leaves it zero
	narrow(l, other, def *Limits)                    // leaves the smaller bound of l and other in l
	text(l *Limits) string                           // the value, "0" when it is not set
	inRange(l *Limits) bool                          // whether a policy file could hold the value
	read(f *fileParser, value *yaml.Node, l *Limits) // reads the value of the key in a policy file
}

// whole is a limit that is a whole number from 1 to most.
type whole[N int | int64] struct {
	name  string
	most  int64
	field func(*Limits) *N
}

func (k whole[N]) key() string             { return k.name }
func (k whole[N]) settle(l, other *Limits) { settleField(k.field(l), k.field(other)) }
func (k whole[N]) narrow(l, other, def *Limits) {
	narrowField(k.field(l), k.field(other), k.field(def))
}
func (k whole[N]) text(l *Limits) string  { return strconv.FormatInt(int64(*k.field(l)), 10) }
func (k whole[N]) inRange(l *Limits) bool { v := int64(*k.field(l)); return v >= 0 && v <= k.most }
func (k whole[N]) read(f *fileParser, n *yaml.Node, l *Limits) {
	*k.field(l) = N(f.count(n, k.name, k.most))
}

// rate is a limit a second: a number above 0.
type rate struct {
	name  string
	field func(*Limits) *float64
}

func (k rate) key() string             { return k.name }
func (k rate) settle(l, other *Limits) { settleField(k.field(l), k.field(other)) }

func (k rate) narrow(l, other, def *Limits) { narrowField(k.field(l), k.field(other), k.field(def)) }

func (k rate) text(l *Limits) string { return strconv.FormatFloat(*k.field(l), 'f', -1, 64) }

func (k rate) inRange(l *Limits) bool                      { v := *k.field(l); return v >= 0 && v <= maxRate }
func (k rate) read(f *fileParser, n *yaml.Node, l *Limits) { *k.field(l) = f.rate(n, k.name) }

// limitKeys is total: TestLimitKeys counts the fields.
func limitKeys() []limitKey {
	return []limitKey{
		whole[int]{"connections", math.MaxInt32, func(l *Limits) *int { return &l.Connections }},
		whole[int]{"connections_per_client", math.MaxInt32, func(l *Limits) *int { return &l.ConnectionsPerClient }},
		rate{"rate_per_second", func(l *Limits) *float64 { return &l.RatePerSecond }},
		rate{"rate_per_client", func(l *Limits) *float64 { return &l.RatePerClient }},
		whole[int64]{"bytes_per_flow", math.MaxInt64, func(l *Limits) *int64 { return &l.BytesPerFlow }},
		whole[int64]{"max_duration_seconds", maxSeconds, func(l *Limits) *int64 { return &l.MaxDurationSeconds }},
		whole[int64]{"idle_timeout_seconds", maxSeconds, func(l *Limits) *int64 { return &l.IdleTimeoutSeconds }},
		whole[int]{"head_bytes", 1 << 20, func(l *Limits) *int { return &l.HeadBytes }},
		whole[int]{"hello_bytes", 1 << 20, func(l *Limits) *int { return &l.HelloBytes }},
		whole[int64]{"head_timeout_seconds", maxSpeechSeconds, func(l *Limits) *int64 { return &l.HeadTimeoutSeconds }},
		whole[int64]{"hello_timeout_seconds", maxSpeechSeconds, func(l *Limits) *int64 { return &l.HelloTimeoutSeconds }},
	}
}

// settle fills the zero fields of l from other.
func (l *Limits) settle(other Limits) {
	for _, k := range limitKeys() {
		k.settle(l, &other)
	}
}

// stricter reports, field by field, the smaller bound of l and other. A field
// that neither sets stays zero; one that only one of them sets is compared with
// the default that the other means by zero.
func (l Limits) stricter(other Limits) Limits {
	def := DefaultLimits()
	for _, k := range limitKeys() {
		k.narrow(&l, &other, &def)
	}
	return l
}

// lines spells what l sets as policy text, one line a field.
func (l Limits) lines() []string {
	var out []string
	for _, k := range limitKeys() {
		if text := k.text(&l); text != "0" {
			out = append(out, k.key()+": "+text)
		}
	}
	return out
}

// outOfRange names the fields that no policy file could hold.
func (l Limits) outOfRange() (names []string) {
	for _, k := range limitKeys() {
		if !k.inRange(&l) {
			names = append(names, k.key())
		}
	}
	return names
}

func settleField[N int | int64 | float64](have, other *N) { *have = firstSet(*have, *other) }

func narrowField[N int | int64 | float64](have, other, def *N) {
	*have = smaller(*have, *other, *def)
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
