// Package policy answers the one question egressd exists for: who may talk to
// whom. It is pure: no clock, no network, no logging.
package policy

import (
	"errors"
	"net/netip"
	"sync/atomic"
)

// Policy is a compiled policy: immutable, shared by all goroutines. A nil
// Policy denies everything.
type Policy struct{}

// Pos is where a rule was written: a file with line and column (1-based), or a
// flag ("--allow") with Line as its ordinal and Column 0.
type Pos struct {
	File         string
	Line, Column int
}

// Rule is one compiled rule. Read-only.
type Rule struct {
	Text string
	Pos  Pos
}

// Entry is one line of policy text and where it stands.
type Entry struct {
	Text string
	Pos  Pos
}

// Document is policy text before it is compiled: one policy file, or what the
// flags said. The zero Document is empty and denies everything.
type Document struct {
	Allow, Deny, Presets []Entry
	Hosts                []Entry // "NAME=ADDR[,ADDR...]"
	DNS                  DNS
	Secrets              []Secret
	Limits               Limits
	Audit                bool // allow everything, record what would have been denied
}

// DNS is the dns section. Zero: synthetic answers, the system's upstreams.
type DNS struct {
	Mode      string // "", "synthetic" or "forward"
	Upstreams []Entry
}

// Secret binds a secret to one header towards named hosts: the client sees a
// placeholder, the proxy substitutes the value. Those hosts' TLS is intercepted.
type Secret struct {
	Env    string // environment variable that holds the value outside and the placeholder inside
	Header string // e.g. Authorization
	Hosts  []Host
	Pos    Pos
}

// Limits bounds one gate. Zero fields take the engine's (bounded) defaults.
type Limits struct {
	Connections          int
	ConnectionsPerClient int
	RatePerSecond        float64 // new flows a second
	BytesPerFlow         int64
	MaxDurationSeconds   int64
	IdleTimeoutSeconds   int64
	HeadBytes            int
}

// ParseFile reads a policy file (YAML, strict). name is used in positions.
// Errors list every problem as file:line:column: what: how to fix it.
func ParseFile(name string, data []byte) (*Document, error) { return nil, errors.New("stub") }

// Compile joins documents into one policy, loading the presets they name.
func Compile(docs ...*Document) (*Policy, error) { return nil, errors.New("stub") }

// ParseHost reads one host as a client may spell it.
func ParseHost(s string) (Host, error) { return Host{}, errors.New("stub") }

// ParseAuthority reads "host:port" (RFC 9110 authority-form); the port is mandatory.
func ParseAuthority(s string) (Host, uint16, error) { return Host{}, 0, errors.New("stub") }

// Decide answers r. It allocates nothing.
func (p *Policy) Decide(r Request) Decision { return Decision{} }

// DecideAddrs takes the second look at every answer for r.Host: one denied
// address denies them all. No addresses: ReasonNotFound.
func (p *Policy) DecideAddrs(r Request, addrs []netip.Addr) Decision { return Decision{} }

// Static reports the hosts entries of h (nil: none, resolve it).
func (p *Policy) Static(h Host) []netip.Addr { return nil }

// Digest is "sha256:<hex>" over the compiled policy's canonical text.
func (p *Policy) Digest() string { return "" }

// DNS, Secrets, Limits and Audit report the compiled sections.
func (p *Policy) DNS() DNS          { return DNS{} }
func (p *Policy) Secrets() []Secret { return nil }
func (p *Policy) Limits() Limits    { return Limits{} }
func (p *Policy) Audit() bool       { return false }

// Rules lists the compiled rules, allow then deny, in source order.
func (p *Policy) Rules() (allow, deny []*Rule) { return nil, nil }

// Ports lists the single ports that allow rules name (for capture without nftables).
func (p *Policy) Ports() []uint16 { return nil }

// Suggest reports the rule text that would allow what d denied ("" when no
// rule can, as for a malformed request).
func Suggest(r Request, d Decision) string { return "" }

// ClassifyAddr reports the special-purpose class of a ("" for an ordinary
// public unicast address), judged by the IPv4 inside where one is embedded.
func ClassifyAddr(a netip.Addr) string { return "" }

// Current is the policy in force, swapped whole on reload. The zero Current
// holds a nil Policy and so denies.
type Current struct{ p atomic.Pointer[Policy] }

// Load reports the policy in force; nil denies.
func (c *Current) Load() *Policy { return c.p.Load() }

// Store puts p in force.
func (c *Current) Store(p *Policy) { c.p.Store(p) }

func (r Reason) String() string  { return "" }
func (v Verdict) String() string { return "" }
func (p Pos) String() string     { return "" }
