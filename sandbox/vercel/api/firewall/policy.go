// Package firewall is the network policy of a Vercel Sandbox: as it is sent, as
// the service reports it, and whether the two agree:
//
//	sent := &firewall.Policy{Domains: []firewall.Domain{{Name: "api.example.com"}}}
//	err := sent.Compare(reported) // a *Difference if another policy is in force
package firewall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Policy is what a session may reach, as it is sent. The zero policy denies all,
// and so does nil as an argument.
type Policy struct {
	AllowAll bool // everything; the rest is empty then

	Domains      []Domain
	AllowSubnets []string // CIDRs that are reached whatever Domains says; they open DNS
	DenySubnets  []string // CIDRs that beat everything else
}

// Domain is one that may be reached, by TLS's server name. "*.x" is every depth
// below x, "*" everything.
type Domain struct {
	Name  string
	Rules []Rule // the first that matches acts; none: the traffic is only let through
}

// Rule changes requests to a domain; TLS ends at the service for it. It has
// exactly one of Headers, ForwardURL and Response.
type Rule struct {
	Match      *Match
	Headers    map[string]string // set on the way out, never seen inside
	ForwardURL string            // https, without query and fragment
	Response   *Response
}

// Match says which requests; what is empty matches all.
type Match struct {
	Path        *Matcher     `json:"path,omitempty"`
	Method      []string     `json:"method,omitempty"`
	QueryString []KeyMatcher `json:"queryString,omitempty"`
	Headers     []KeyMatcher `json:"headers,omitempty"`
}

// Matcher has exactly one of its fields.
type Matcher struct {
	Exact      string `json:"exact,omitempty"`
	StartsWith string `json:"startsWith,omitempty"`
	Regex      string `json:"regex,omitempty"` // RE2
}

// KeyMatcher matches a name and, where it is there, its value.
type KeyMatcher struct {
	Key   *Matcher `json:"key,omitempty"`
	Value *Matcher `json:"value,omitempty"`
}

// Response is an answer that the service gives itself.
type Response struct {
	StatusCode  int               `json:"statusCode"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        string            `json:"body,omitempty"`
	ContentType string            `json:"contentType,omitempty"`
}

// MarshalJSON writes the form that the service's own clients send: a mode, or
// domains and subnets.
func (p *Policy) MarshalJSON() ([]byte, error) {
	switch {
	case p == nil || !p.AllowAll && len(p.Domains)+len(p.AllowSubnets) == 0:
		return []byte(`{"mode":"deny-all"}`), nil
	case p.AllowAll:
		return []byte(`{"mode":"allow-all"}`), nil
	}
	var b bytes.Buffer
	b.WriteByte('{')
	if len(p.Domains) > 0 {
		b.WriteString(`"allow":`)
		allow, err := p.allow()
		if err != nil {
			return nil, err
		}
		b.Write(allow)
	}
	if len(p.AllowSubnets)+len(p.DenySubnets) > 0 {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		subnets, err := marshal(struct {
			Allow []string `json:"allow,omitempty"`
			Deny  []string `json:"deny,omitempty"`
		}{p.AllowSubnets, p.DenySubnets})
		if err != nil {
			return nil, err
		}
		b.WriteString(`"subnets":`)
		b.Write(subnets)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// allow is a list of names, or names and their rules where there are any.
func (p *Policy) allow() ([]byte, error) {
	names := []string{}
	ruled := false
	for _, d := range p.Domains {
		names = append(names, d.Name)
		ruled = ruled || len(d.Rules) > 0
	}
	if !ruled {
		return marshal(names)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, d := range p.Domains {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := marshal(d.Name)
		if err != nil {
			return nil, err
		}
		rules := d.Rules
		if rules == nil {
			rules = []Rule{}
		}
		text, err := marshal(rules)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// MarshalJSON writes headers as a list of transforms.
func (r Rule) MarshalJSON() ([]byte, error) {
	type transform struct {
		Headers map[string]string `json:"headers"`
	}
	out := struct {
		Match      *Match      `json:"match,omitempty"`
		Transform  []transform `json:"transform,omitempty"`
		ForwardURL string      `json:"forwardURL,omitempty"`
		Response   *Response   `json:"response,omitempty"`
	}{Match: r.Match, ForwardURL: r.ForwardURL, Response: r.Response}
	if r.Headers != nil {
		out.Transform = []transform{{r.Headers}}
	}
	return marshal(out)
}

// Validate reports what the service would refuse. A nil policy is valid.
func (p *Policy) Validate() error {
	if p == nil {
		return nil
	}
	if p.AllowAll && len(p.Domains)+len(p.AllowSubnets)+len(p.DenySubnets) > 0 {
		return errors.New("a network policy that allows all says something else besides")
	}
	have := map[string]bool{}
	for _, d := range p.Domains {
		name := strings.ToLower(d.Name)
		if name == "" || have[name] || strings.ContainsAny(name, "/:@ \t\r\n") {
			return fmt.Errorf("the domain %q is empty, not one, or there twice", d.Name)
		}
		have[name] = true
		for _, r := range d.Rules {
			if err := r.validate(); err != nil {
				return fmt.Errorf("domain %s: %w", d.Name, err)
			}
		}
	}
	for _, s := range append(append([]string{}, p.AllowSubnets...), p.DenySubnets...) {
		if _, err := netip.ParsePrefix(s); err != nil {
			return fmt.Errorf("the subnet %q is not a CIDR", s)
		}
	}
	return nil
}

// validate never puts a header's value into its error.
func (r Rule) validate() error {
	acts := 0
	for _, is := range []bool{r.Headers != nil, r.ForwardURL != "", r.Response != nil} {
		if is {
			acts++
		}
	}
	switch {
	case acts != 1:
		return errors.New("a rule sets headers, forwards or answers, one of them")
	case r.ForwardURL != "" && (!strings.HasPrefix(r.ForwardURL, "https://") || strings.ContainsAny(r.ForwardURL, "?#")):
		return errors.New("a forward URL is https:// and has no query or fragment")
	}
	if r.Response != nil {
		return r.Response.validate()
	}
	for name, value := range r.Headers {
		if name == "" || strings.ContainsAny(name, " \t\r\n:") || strings.ContainsAny(value, "\r\n\x00") {
			return errors.New("a header to set has no name or holds a line break")
		}
	}
	return nil
}

func (r *Response) validate() error {
	switch bare := r.StatusCode == 204 || r.StatusCode == 205 || r.StatusCode == 304; {
	case r.StatusCode < 200 || r.StatusCode > 599:
		return fmt.Errorf("status %d of a response is not in 200 to 599", r.StatusCode)
	case r.Body != "" && bare:
		return fmt.Errorf("a response with status %d has no body", r.StatusCode)
	case r.Body != "" && r.ContentType == "":
		return errors.New("a response with a body needs a content type")
	}
	for name := range r.Headers {
		switch strings.ToLower(name) {
		case "connection", "content-length", "transfer-encoding":
			return fmt.Errorf("a response sets %s, which the service does itself", name)
		}
	}
	return nil
}

// marshal is JSON without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
