package policy

import (
	"go.yaml.in/yaml/v3"

	"egressd/policy/upstream"
)

// Upstream reports the proxy through which flows leave; nil: directly. Under a
// ceiling it is the ceiling's: the session has no say in it.
func (p *Policy) Upstream() *upstream.Proxy {
	if p == nil || p.upstream == nil || p.upstream.None {
		return nil
	}
	return p.upstream
}

// upstream reads the upstream_proxy section: a URL, or a mapping.
func (f *fileParser) upstream(n *yaml.Node) {
	if isNull(n) {
		return
	}
	s := &f.doc.Upstream
	s.At = f.pos(n).String()
	one := func(to *string, where string) func(*yaml.Node) {
		return func(v *yaml.Node) { *to, _ = f.text(v, "upstream_proxy."+where) }
	}
	if n.Kind == yaml.ScalarNode {
		one(&s.URL, "url")(n)
	} else {
		f.keys(n, "upstream_proxy", map[string]func(*yaml.Node){
			"url": one(&s.URL, "url"), "resolve": one(&s.Resolve, "resolve"),
			"credentials_file": one(&s.Credentials, "credentials_file"), "ca_file": one(&s.CA, "ca_file"),
			"bypass": func(v *yaml.Node) {
				for _, e := range f.list(v, "upstream_proxy.bypass") {
					s.Bypass = append(s.Bypass, e.Text)
				}
			},
		})
	}
	if _, err := s.Compile(); err != nil {
		f.errs.add(f.pos(n), "", "upstream_proxy: %s", err)
	}
}

// upstream takes the section of a document. The first one that names a proxy, or
// none, counts as a whole.
func (c *compiler) upstream(s upstream.Section) {
	if s.IsZero() || c.p.upstream != nil {
		return
	}
	u, err := s.Compile()
	if err != nil {
		c.errs.add(Pos{File: s.At}, "", "%s", err)
		return
	}
	c.p.upstream = u
}

// checkUpstream comes after all documents.
func (c *compiler) checkUpstream() {
	if u := c.p.Upstream(); u != nil && u.AtProxy && c.p.dns.Mode == DNSForward {
		c.errs.add(Pos{}, "leave dns.mode out, or take resolve: local",
			"dns.mode is forward, but names are looked up at the upstream proxy: there are no addresses to answer with")
	}
}
