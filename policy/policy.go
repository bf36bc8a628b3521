// Package policy answers the one question egressd exists for: who may talk to
// whom. It is pure: no clock, no network, no logging.
//
// Text becomes a [Document] (by [ParseFile], or built from flags), documents
// become a [Policy] (by [Compile]), and doors put their [Request] to
// [Policy.Decide], again each time they learn more. Hosts are spelled in one
// way only, by [ParseHost].
package policy

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"egressd/policy/files"
	"egressd/policy/internal/intranet"
	"egressd/policy/upstream"
)

// Policy is a compiled policy: immutable, shared by all goroutines. A nil or
// zero Policy denies everything.
type Policy struct {
	loaded      bool
	audit       bool
	allow, deny *index
	allowRules  []*Rule // without those that are in tables of list files
	denyRules   []*Rule
	localNames
	secretHosts map[target]bool
	secrets     []Secret
	presets     []string
	network
	limits  Limits
	files   files.Section
	digest  func() string
	ceiling *Policy // what p was narrowed by, see Under; nil: nothing
}

// network is how names are looked up and flows leave.
type network struct {
	dns      DNS
	upstream *upstream.Proxy // nil: nothing was said
}

// localNames are names with addresses of their own.
type localNames struct {
	static   map[Host][]netip.Addr // fixed by hosts entries
	intranet intranet.Names        // those with legitimate private addresses, and all below them
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
	AllowFiles           []listFile `json:",omitempty"`
	DenyFiles            []listFile `json:",omitempty"`
	Hosts                []Entry    // "NAME=ADDR[,ADDR...]"
	Intranet             []Entry    `json:",omitempty"` // names whose private addresses are legitimate, with all below them
	DNS                  DNS
	Secrets              []Secret
	Limits               Limits
	Files                files.Section    `json:",omitzero"` // what the program may do with files
	Upstream             upstream.Section `json:"-"`         // the proxy through which flows leave; a launcher has no say in how a daemon leaves
	Audit                bool             // allow everything, record what would have been denied
	Stricter             bool             `json:",omitempty"` // its limits bound those of all other documents
}

// Secret binds a secret to one header towards named hosts: the client sees a
// placeholder, the proxy substitutes the value. Those hosts' TLS is intercepted.
type Secret struct {
	Env    string   // environment variable that holds the value outside and the placeholder inside
	Header string   // e.g. Authorization
	Hosts  []Host   // on port 443
	Others []target `json:",omitempty"` // on the ports they name
	Pos    Pos
}

// Intranet lists the names whose private addresses are legitimate, with all below
// them; nil: there are none.
func (p *Policy) Intranet() []string { return slices.Clone([]string(p.intranet)) }

// Static reports the hosts entries of h (nil: none, resolve it).
func (p *Policy) Static(h Host) []netip.Addr {
	for ; p != nil; p = p.ceiling {
		if addrs := p.static[h]; len(addrs) > 0 {
			return slices.Clone(addrs)
		}
	}
	return nil
}

// Spells reports whether an allow rule or a hosts entry names h itself, and not
// only a domain above it. Such names are as many as somebody wrote down; of
// names below a wildcard a client can ask for any number.
func (p *Policy) Spells(h Host) bool {
	if p == nil || !p.loaded || h.name == "" {
		return false
	}
	return p.allow.spells(h.name) || len(p.Static(h)) > 0
}

// Digest is "sha256:<hex>" over the compiled policy's canonical text. It does
// not depend on formatting, nor on order where order means nothing; any change
// in what the policy decides changes it. A nil or zero Policy has the digest "".
func (p *Policy) Digest() string {
	if p == nil || !p.loaded {
		return ""
	}
	return p.digest()
}

// DNS reports the dns section; zero for a nil Policy. Upstreams is the policy's
// own slice and must not be changed: this is asked once for each DNS query.
func (p *Policy) DNS() DNS {
	if p == nil {
		return DNS{}
	}
	return p.dns
}

// Secrets reports the secrets section.
func (p *Policy) Secrets() []Secret {
	if p == nil {
		return nil
	}
	return slices.Clone(p.secrets)
}

// Limits reports the limits section.
func (p *Policy) Limits() Limits {
	if p == nil {
		return Limits{}
	}
	return p.limits
}

// Audit reports whether the policy records denials instead of enforcing them.
func (p *Policy) Audit() bool { return p != nil && p.audit }

// Rules lists the compiled rules, allow then deny, in source order. A policy with
// long list files has as many: see Each and Count.
func (p *Policy) Rules() (allow, deny []*Rule) {
	return slices.Collect(p.Each(false)), slices.Collect(p.Each(true))
}

// Ports lists, in order, the ports that allow rules name (80 and 443 for a rule
// without ports). Ranges of more than 64 ports are left out whole. It is for
// capture without nftables, which needs a listener for each port.
func (p *Policy) Ports() []uint16 {
	if p == nil || !p.loaded {
		return nil
	}
	seen := make(map[uint16]bool)
	for i := range p.allow.rules {
		p.allow.rules[i].ports.Each(func(port uint16) { seen[port] = true })
	}
	for _, l := range p.allow.lists {
		maps.Copy(seen, l.table.ports)
	}
	return slices.Sorted(maps.Keys(seen))
}

// Current is the policy in force, swapped whole on reload. The zero Current
// holds a nil Policy and so denies.
type Current struct{ p atomic.Pointer[Policy] }

// Load reports the policy in force; nil denies.
func (c *Current) Load() *Policy { return c.p.Load() }

// Store puts p in force.
func (c *Current) Store(p *Policy) { c.p.Store(p) }

// lazyDigest computes the digest when it is first asked for: sorting the text
// of a million rules costs more than compiling them.
func lazyDigest(text func() string) func() string { return sync.OnceValue(text) }
