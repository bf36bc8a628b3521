package learn

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/policy"
)

// Text reports the policy file.
func (r *Recorder) Text() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b bytes.Buffer
	b.WriteString("# Learned from one run: exactly what it used, nothing wider.\n# Read it before you use it: launch check FILE\n")
	if r.over {
		fmt.Fprintf(&b, "# NOT COMPLETE: the run used more than %d different destinations, or %d files.\n", maxFacts, maxRefusals)
	}
	rules := r.rules()
	if len(rules) == 0 {
		b.WriteString("# The run used nothing that a policy can allow.\nallow: []\n")
	} else {
		b.WriteString("allow:\n")
		for _, rule := range rules {
			fmt.Fprintf(&b, "  - %s\n", scalar(rule))
		}
	}
	r.writeHosts(&b)
	r.writeFiles(&b)
	r.writeDoubts(&b)
	return b.Bytes()
}

// ports is what was learned about one host.
type ports struct {
	host       policy.Host
	plain, raw []uint16
}

// rules lists the allow rules: whole hosts first, then single requests, in
// order of appearance.
func (r *Recorder) rules() []string {
	hosts := r.hosts()
	var out []string
	for _, p := range hosts {
		out = append(out, p.rules()...)
	}
	for _, f := range r.list {
		if f.doubt != "" {
			continue
		}
		rule := f.rule
		if rule != "" && r.used(f) {
			rule = ""
		}
		if f.request != "" {
			rule = f.request
		}
		if rule != "" && !slices.Contains(out, rule) {
			out = append(out, rule)
		}
	}
	return out
}

// hosts gathers the ports of each whole host.
func (r *Recorder) hosts() []*ports {
	byHost := make(map[policy.Host]*ports)
	var order []*ports
	get := func(h policy.Host) *ports {
		p := byHost[h]
		if p == nil {
			p = &ports{host: h}
			byHost[h] = p
			order = append(order, p)
		}
		return p
	}
	for _, f := range r.list {
		if f.doubt != "" || f.request != "" || f.rule != "" || f.port == 0 {
			continue
		}
		if f.raw {
			get(f.host).raw = append(get(f.host).raw, f.port)
		} else {
			get(f.host).plain = append(get(f.host).plain, f.port)
		}
	}
	return order
}

// mentioned reports whether a connection to h was seen.
func (r *Recorder) mentioned(h policy.Host) bool {
	return slices.ContainsFunc(r.list, func(f fact) bool { return f.host == h && f.port != 0 })
}

// used reports whether requests under the path rule of f were seen.
func (r *Recorder) used(f fact) bool {
	return slices.ContainsFunc(r.list, func(g fact) bool { return g.request != "" && g.host == f.host && g.port == f.port })
}

func (p *ports) rules() []string {
	slices.Sort(p.raw)
	p.raw = slices.Compact(p.raw)
	slices.Sort(p.plain)
	p.plain = slices.DeleteFunc(slices.Compact(p.plain), func(n uint16) bool { return slices.Contains(p.raw, n) })
	var out []string
	switch {
	case slices.Equal(p.plain, []uint16{80, 443}):
		out = append(out, p.host.String())
	case len(p.plain) > 0:
		out = append(out, bracketed(p.host)+":"+join(p.plain))
	}
	if len(p.raw) > 0 {
		out = append(out, "raw:"+bracketed(p.host)+":"+join(p.raw))
	}
	return out
}

func join(list []uint16) string {
	var words []string
	for _, n := range list {
		words = append(words, strconv.Itoa(int(n)))
	}
	return strings.Join(words, ",")
}

func bracketed(h policy.Host) string {
	if h.Addr().Is6() {
		return "[" + h.String() + "]"
	}
	return h.String()
}

// writeHosts repeats the fixed addresses that the run relied on.
func (r *Recorder) writeHosts(b *bytes.Buffer) {
	if r.Static == nil {
		return
	}
	head := "hosts:\n"
	var done []policy.Host
	for _, f := range r.list {
		addrs := r.Static(f.host)
		if f.host.Name() == "" || len(addrs) == 0 || f.doubt != "" || slices.Contains(done, f.host) {
			continue
		}
		done = append(done, f.host)
		fmt.Fprintf(b, "%s  %s: %s\n", head, f.host, addrList(addrs))
		head = ""
	}
}

func addrList(addrs []netip.Addr) string {
	var words []string
	for _, a := range addrs {
		words = append(words, strconv.Quote(a.String()))
	}
	if len(words) == 1 {
		return words[0]
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// writeDoubts writes what a person must decide, as comments.
func (r *Recorder) writeDoubts(b *bytes.Buffer) {
	lines := r.fileDoubts()
	for _, f := range r.list {
		rule := bracketed(f.host)
		switch {
		case f.port != 0:
			rule += ":" + strconv.Itoa(int(f.port))
		case f.doubt == "" && !r.mentioned(f.host):
			rule, f.doubt = rule+policyflags.UnknownPort, "only its name was asked for: put the port in place of PORT, or learn it with --audit"
		}
		if f.doubt == "" {
			continue
		}
		line := fmt.Sprintf("#   - %s   # %s", scalar(rule), cli.Safe(f.doubt))
		if f.addr.IsValid() {
			line += fmt.Sprintf("; it needs, under hosts:  %s: %q", f.host, f.addr)
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "# Left out, for you to decide:\n%s\n", strings.Join(lines, "\n"))
	}
}

// scalar spells s as one YAML scalar.
func scalar(s string) string {
	for i, c := range s {
		word := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !word && (i == 0 || !strings.ContainsRune(":./_-,", c)) || i == len(s)-1 && c == ':' {
			return strconv.QuoteToASCII(s)
		}
	}
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return strconv.Quote(s)
	}
	return s
}
