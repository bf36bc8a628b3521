package policy

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// target is a host and one of its ports.
type target struct {
	Host Host
	Port uint16
}

// String spells a as secrets do: without the port if that is 443.
func (a target) String() string {
	if a.Port == 443 {
		return a.Host.String()
	}
	return hostPort(a.Host, a.Port)
}

// add adds a host (port 443) or host:port to those that s goes to.
func (s *Secret) add(text string) error {
	h, err := ParseHost(text)
	if err == nil {
		s.Hosts = append(s.Hosts, h)
		return nil
	}
	h, port, perr := ParseAuthority(text)
	if perr != nil {
		return err
	}
	if port == 443 {
		s.Hosts = append(s.Hosts, h)
	} else {
		s.Others = append(s.Others, target{h, port})
	}
	return nil
}

// Targets lists where s goes.
func (s Secret) Targets() []target {
	out := make([]target, 0, len(s.Hosts)+len(s.Others))
	for to := range s.targets {
		out = append(out, to)
	}
	return out
}

// targets calls yield with each place that s goes to.
func (s Secret) targets(yield func(target) bool) {
	for _, h := range s.Hosts {
		if !yield(target{h, 443}) {
			return
		}
	}
	for _, to := range s.Others {
		if !yield(to) {
			return
		}
	}
}

// goesTo reports whether s goes to h on port.
func (s Secret) goesTo(h Host, port uint16) bool {
	for to := range s.targets {
		if to == (target{h, port}) {
			return true
		}
	}
	return false
}

// SecretsFor lists the secrets that go to h on port. Nil: none.
func (p *Policy) SecretsFor(h Host, port uint16) (out []Secret) {
	if p == nil || !p.secretHosts[target{h, port}] {
		return nil
	}
	for _, s := range p.secrets {
		if s.goesTo(h, port) {
			out = append(out, s)
		}
	}
	return out
}

func (f *fileParser) secrets(n *yaml.Node) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		f.errs.add(f.pos(n), "write a list of {env, header, hosts}", "secrets is %s, not a list", kindName(n))
		return
	}
	for _, item := range n.Content {
		if f.plain(item) {
			f.secret(item)
		}
	}
}

func (f *fileParser) secret(n *yaml.Node) {
	s := Secret{Pos: f.pos(n)}
	before := len(f.errs.list)
	f.keys(n, "a secret", map[string]func(*yaml.Node){
		"env":    func(v *yaml.Node) { s.Env, _ = f.text(v, "env") },
		"header": func(v *yaml.Node) { s.Header, _ = f.text(v, "header") },
		"hosts": func(v *yaml.Node) {
			for _, e := range f.list(v, "secret hosts") {
				if err := s.add(e.Text); err != nil {
					f.errs.add(e.Pos, "write exact hosts (port 443) or host:port; a secret takes no patterns", "secret %s", err)
				}
			}
		},
	})
	if len(f.errs.list) > before {
		return
	}
	if wrong := s.problems(); len(wrong.list) > 0 {
		f.errs.merge(wrong)
		return
	}
	f.doc.Secrets = append(f.doc.Secrets, s)
}

// problems says what is wrong with s alone. Documents come from other places
// than files, too.
func (s Secret) problems() (errs problems) {
	switch {
	case !envName(s.Env):
		errs.add(s.Pos, "add env: NAME, the environment variable that holds it", "secret names no environment variable (%q)", s.Env)
	case !headerName(s.Header):
		errs.add(s.Pos, "add header: Authorization, or the header it belongs in", "secret %s names no HTTP header (%q)", s.Env, s.Header)
	case len(s.Hosts)+len(s.Others) == 0:
		errs.add(s.Pos, "add hosts: [api.example.com]", "secret %s names no host it may go to", s.Env)
	}
	for _, to := range s.Others {
		if to.Port == 0 || to.Port == 80 {
			errs.add(s.Pos, "name a port that speaks TLS", "secret %s: port %d of %s never carries a secret", s.Env, to.Port, to.Host)
		}
	}
	return errs
}

func envName(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// headerName accepts field names (RFC 9110 section 5.1) except those that
// frame or route the message, which a secret has no business in.
func headerName(s string) bool {
	if s == "" || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") != "" {
		return false
	}
	switch strings.ToLower(s) {
	case "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer":
		return false
	}
	return true
}
