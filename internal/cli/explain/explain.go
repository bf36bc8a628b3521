// Package explain says in words how a policy judges one destination: the verdict,
// the reason, the rule that decided and its place, and what to type to change it.
//
//	text, allowed, err := explain.Answers(policy, []string{"https://example.com/"}, "", nil)
//
// It says what a policy as a whole allows, too, and what its presets hold.
package explain

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/policy"
)

// Target is what a person asked about.
type Target struct {
	Text   string
	Host   policy.Host
	Port   uint16
	Method string // "": the target says nothing about requests
	Path   string
	Addrs  []netip.Addr // those of the host, as looked up; nil: it was not
	wire   policy.Wire  // the protocol of the scheme
}

// schemes lists the default ports of URL schemes.
func schemes() map[string]uint16 {
	return map[string]uint16{
		"https": 443, "http": 80, "wss": 443, "ws": 80, "ssh": 22, "git+ssh": 22, "git": 9418, "ftp": 21,
		"postgres": 5432, "postgresql": 5432, "mysql": 3306, "redis": 6379, "rediss": 6379, "mongodb": 27017,
		"ldap": 389, "ldaps": 636, "smtp": 25, "smtps": 465, "imaps": 993, "amqp": 5672, "amqps": 5671,
	}
}

// Parse reads a URL, host:port, or a host alone (port 443). method is that of the
// request; "" is GET if the target is a URL.
func Parse(text, method string) (Target, error) {
	t := Target{Text: text, Method: method}
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL {
		rest = text
		if i := strings.IndexByte(text, '/'); i >= 0 {
			return t, fmt.Errorf("%q: a path needs a scheme: write https://%s", text, text)
		}
	}
	port := uint16(443)
	if isURL {
		p, known := schemes()[strings.ToLower(scheme)]
		if !known {
			return t, fmt.Errorf("%q: scheme %s is not known here: write HOST:PORT", text, scheme)
		}
		port = p
		t.setRequest(strings.ToLower(scheme), &rest)
		if i := strings.LastIndexByte(rest, '@'); i >= 0 {
			if t.wire != policy.WireUnseen {
				return t, errors.New("a user in a URL is refused by every door: remove what stands before the @")
			}
			rest = rest[i+1:] // ssh://git@example.com
		}
	}
	return t, t.setHost(rest, port)
}

// setRequest cuts path, query and fragment off rest and notes the request.
func (t *Target) setRequest(scheme string, rest *string) {
	path := "/"
	if i := strings.IndexAny(*rest, "/?#"); i >= 0 {
		path = (*rest)[i:]
		*rest = (*rest)[:i]
		path, _, _ = strings.Cut(path, "#")
		path, _, _ = strings.Cut(path, "?")
		if path == "" {
			path = "/"
		}
	}
	switch scheme {
	case "https", "wss":
		t.wire = policy.WireTLS
	case "http", "ws":
		t.wire = policy.WireHTTP
	default:
		return
	}
	t.Path = path
	if t.Method == "" {
		t.Method = "GET"
	}
}

func (t *Target) setHost(rest string, port uint16) error {
	h, err := policy.ParseHost(rest)
	if err == nil {
		t.Host, t.Port = h, port
		return nil
	}
	h, p, aerr := policy.ParseAuthority(rest)
	if aerr == nil {
		t.Host, t.Port = h, p
		return nil
	}
	if strings.Count(rest, ":") == 1 {
		err = aerr // HOST:PORT, not an IPv6 address
	}
	return fmt.Errorf("%q: %w", t.Text, err)
}

// Judge asks p every question that can be asked before a connection is made,
// in the order in which the doors ask them, and reports the last answer.
func Judge(p *policy.Policy, t Target) (policy.Request, policy.Decision) {
	r := policy.Request{Host: t.Host, Port: t.Port}
	d := p.Decide(r)
	if !d.Allowed() {
		return r, d
	}
	addrs := p.Static(t.Host)
	if len(addrs) == 0 {
		addrs = t.Addrs
	}
	for _, addr := range addrs {
		if a := p.DecideAddrs(r, []netip.Addr{addr}); !a.Allowed() {
			r.Addr = addr
			return r, a
		}
	}
	if d.Verdict == policy.Intercept && t.Method != "" || t.wire == policy.WireHTTP && d.Needs == policy.WireHTTP {
		r.Method, r.Path = t.Method, t.Path
		in := p.Decide(r)
		if !in.Allowed() {
			return r, in
		}
		d.Reason, d.Rule = in.Reason, in.Rule // the verdict stays: TLS is opened first
	}
	if t.wire != policy.WireUnseen && d.Needs != policy.WireUnseen {
		w := r
		w.Wire, w.HTTPHost = t.wire, t.Host
		if t.wire == policy.WireTLS {
			w.SNI = t.Host.SNI()
		}
		if in := p.Decide(w); !in.Allowed() {
			return w, in
		}
	}
	return r, d
}

// Answers explains the decision about each target, in order; see [Parse] for their
// spelling and for method. lookup reports the addresses of a name; nil, or an error:
// they are not judged. allowed reports whether all of them are. The error is a
// target that could not be read.
func Answers(p *policy.Policy, targets []string, method string, lookup func(policy.Host) ([]netip.Addr, error)) (text string, allowed bool, err error) {
	var out strings.Builder
	allowed = true
	for _, target := range targets {
		t, err := Parse(target, method)
		if err != nil {
			return "", false, err
		}
		var failed error
		if lookup != nil && t.Host.Name() != "" && len(p.Static(t.Host)) == 0 {
			t.Addrs, failed = lookup(t.Host)
		}
		text, ok := Text(p, t)
		out.WriteString(text)
		if failed != nil {
			fmt.Fprintf(&out, "  note    its addresses were not found: %s\n", cli.Safe(failed.Error()))
		}
		allowed = allowed && ok
	}
	return out.String(), allowed, nil
}

// Text explains the decision about t, and reports whether it is allowed.
func Text(p *policy.Policy, t Target) (text string, allowed bool) {
	r, d := Judge(p, t)
	var b strings.Builder
	word := "denied"
	if d.Allowed() {
		word = "allowed"
	}
	fmt.Fprintf(&b, "%-8s %s\n", word, describe(t))
	fmt.Fprintf(&b, "  reason  %s: %s\n", d.Reason, Meaning(d.Reason))
	if d.Rule != nil {
		fmt.Fprintf(&b, "  rule    %s   (%s)\n", cli.Safe(d.Rule.Text), cli.Safe(d.Rule.Pos.String()))
	} else {
		b.WriteString("  rule    none\n")
	}
	if d.Allowed() {
		writeConditions(&b, p, t, d)
		return b.String(), true
	}
	if near := nearMiss(p, t.Host); near != "" {
		fmt.Fprintf(&b, "  note    %s\n", near)
	}
	if d.Reason == policy.ReasonIPProhibited && t.Host.Name() != "" && r.Addr.IsValid() {
		b.WriteString(ofAddress(t, r.Addr))
	} else if rule := d.Suggest(r); rule != "" {
		fmt.Fprintf(&b, "  to allow it, add:\n    %s\n", policyflags.Spell([]string{rule}))
	} else if d.Reason == policy.ReasonDeniedByRule {
		b.WriteString("  to allow it, remove the deny rule: deny beats allow\n")
	}
	return b.String(), false
}

// ofAddress says what to do about an address that names may not have.
func ofAddress(t Target, a netip.Addr) string {
	text := fmt.Sprintf("  address %s (%s)\n", a, policy.ClassifyAddr(a))
	return text + fmt.Sprintf("  to allow it, if that is the server you mean, add:\n    --host %s=%s\n", t.Host, a) +
		"  or name its network under intranet: in a policy file\n"
}

func describe(t Target) string {
	host := t.Host.String()
	if t.Host.Addr().Is6() {
		host = "[" + host + "]"
	}
	place := host + ":" + strconv.Itoa(int(t.Port))
	if t.Method != "" {
		place = t.Method + " " + cli.Safe(t.Text) + " (" + place + ")"
	}
	return place
}

// writeConditions says what an allowed connection must still satisfy.
func writeConditions(b *strings.Builder, p *policy.Policy, t Target, d policy.Decision) {
	switch {
	case d.Audit:
		b.WriteString("  note    allowed by audit mode only\n")
		return
	case d.Verdict == policy.Intercept:
		b.WriteString("  note    its TLS is opened by the gate: every request is judged by method and path\n")
	case d.Needs == policy.WireTLS && t.Host.Name() != "":
		fmt.Fprintf(b, "  needs   TLS with the server name %s\n", t.Host)
	case d.Needs == policy.WireTLS:
		b.WriteString("  needs   TLS without a server name\n")
	case d.Needs == policy.WireHTTP:
		fmt.Fprintf(b, "  needs   HTTP with Host: %s\n", t.Host)
	}
	if addrs := p.Static(t.Host); len(addrs) > 0 {
		fmt.Fprintf(b, "  address %s (fixed by the policy)\n", joinAddrs(addrs))
	} else if t.Host.Name() != "" {
		if len(t.Addrs) > 0 {
			fmt.Fprintf(b, "  address %s\n", joinAddrs(t.Addrs))
			return
		}
		b.WriteString("  needs   public addresses, unless it is in the intranet: a name that resolves to a private one is denied\n")
	}
}

func joinAddrs(addrs []netip.Addr) string {
	var words []string
	for _, a := range addrs {
		words = append(words, a.String())
	}
	return strings.Join(words, ", ")
}

// nearMiss names a rule that people expect to cover h.
func nearMiss(p *policy.Policy, h policy.Host) string {
	if h.Name() == "" {
		return ""
	}
	for r := range p.Each(false) {
		host, _, _ := strings.Cut(r.Text, ":")
		switch {
		case host == "*."+h.Name():
			return fmt.Sprintf("%s covers the names below %s, not %s itself; .%s covers both", host, h, h, h)
		case strings.HasSuffix(h.Name(), "."+host) && !strings.ContainsAny(host, "/* "):
			return fmt.Sprintf("%s is that host alone; *.%s covers the names below it", host, host)
		}
	}
	return ""
}
