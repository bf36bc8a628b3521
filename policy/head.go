package policy

import "strings"

// Head is what the head of an HTTP request says besides method, path and Host,
// and which placeholders are in the request. Never changed once it is judged.
type Head struct {
	// Methods, Paths and Hosts are what fields such as X-HTTP-Method-Override,
	// X-Original-URL and X-Forwarded-Host, or _method in the query, put in the
	// place of the request's own, as sent.
	Methods, Paths, Hosts []string
	Hops                  bool // it bounds its hops (Max-Forwards)
	// Placed is where placeholders stand: for the variable of each secret, the
	// fields; "" is the path, the query, a trailer or the content.
	Placed map[string][]string
}

// NeedsHead reports whether Decide looks at Request.Head at all.
func (p *Policy) NeedsHead() bool {
	for ; p != nil; p = p.ceiling {
		if len(p.secrets) > 0 || p.loaded && (p.allow.paths || p.deny.paths) {
			return true
		}
	}
	return false
}

// judgeHead looks at one HTTP request whose host is allowed: at what would have
// the origin do or answer something else than what is judged.
//
// Threat: TRACE, or OPTIONS with Max-Forwards, has an origin or a proxy in front
// of it send the request back, with the secret that was put into it -> neither is
// forwarded inside TLS that was opened. A field or a query parameter names another
// method, path or host, which many frameworks obey -> refused on hosts with path
// rules. A placeholder is aimed at another host, port or field -> refused wherever
// requests are seen. Left over: _method in a form, which is content; fields of an
// origin's own; placeholders in a spelling that is not looked for, which are worth
// nothing.
func (p *Policy) judgeHead(r *Request, f *found, d Decision) Decision {
	switch {
	case r.Wire == WireTLS && (strings.EqualFold(r.Method, "TRACE") || strings.EqualFold(r.Method, "TRACK")):
		d = Decision{Reason: ReasonReflects, Rule: d.Rule}
	case r.Head == nil:
	case r.Head.Hops && strings.EqualFold(r.Method, "OPTIONS") && p.secretHosts[target{r.Host, r.Port}]:
		d = Decision{Reason: ReasonReflects, Rule: d.Rule}
	case f.paths && r.overridden():
		d = Decision{Reason: ReasonOverride, Rule: d.Rule}
	case p.misplaced(r):
		d = Decision{Reason: ReasonMisplaced, Rule: d.Rule}
	}
	return d
}

// overridden reports whether the head names another method, path or host than
// those that are judged.
func (r *Request) overridden() bool {
	for _, m := range r.Head.Methods {
		if m != r.Method {
			return true
		}
	}
	for _, path := range r.Head.Paths {
		if path, _, _ = strings.Cut(path, "?"); path != r.Path {
			return true
		}
	}
	for _, text := range r.Head.Hosts {
		h, err := ParseHost(text)
		port := r.Port
		if err != nil {
			h, port, err = ParseAuthority(text)
		}
		if err != nil || h != r.Host || port != r.Port {
			return true
		}
	}
	return false
}

// misplaced reports whether a placeholder stands where its secret does not go.
func (p *Policy) misplaced(r *Request) bool {
	for env, fields := range r.Head.Placed {
		for _, field := range fields {
			if !p.places(r, env, field) {
				return true
			}
		}
	}
	return false
}

func (p *Policy) places(r *Request, env, field string) bool {
	for i := range p.secrets {
		s := &p.secrets[i]
		if s.Env == env && r.Wire == WireTLS && strings.EqualFold(s.Header, field) && s.goesTo(r.Host, r.Port) {
			return true
		}
	}
	return false
}
