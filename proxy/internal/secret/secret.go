// Package secret puts secret values in the place of the placeholders that clients
// know, finds placeholders that stand elsewhere, and masks values that an origin
// sends back.
//
//	set := cache.Of(policy, value)
//	head.Placed = set.InHead(path, query, request.Header) // for the policy to judge
//	request.Body = set.Watch(request.Body, found)
//	set.Substitute(host, port, request.Header)            // over verified TLS alone
//	mask := set.Mask(host, port)
//	mask.Fields(response.Header)
//	response.Body = mask.Content(response.Body)
//
// What is allowed is the policy's word: see policy.Head.
package secret

import (
	"encoding/base64"
	"net/http"
	"strings"
	"sync/atomic"

	"egressd/policy"
)

// Value reports the placeholder that clients see for the secret in the
// environment variable env, and its value. ok false: there is none.
type Value func(env string) (placeholder, value string, ok bool)

// Set is the secrets of one policy, with their values. Immutable; a nil Set has
// none.
type Set struct {
	policy *policy.Policy
	byEnv  map[string]known
	placed *search // finds the placeholders
}

// known is one secret that has a value.
type known struct{ placeholder, value string }

// Cache holds the Set of the policy that was asked about last. The zero Cache is
// ready. Safe for concurrent use.
type Cache struct{ last atomic.Pointer[Set] }

// Of reports the secrets of p for which find knows a value; nil if there are none.
func (c *Cache) Of(p *policy.Policy, find Value) *Set {
	s := c.last.Load()
	if s == nil || s.policy != p {
		s = newSet(p, find)
		c.last.Store(s)
	}
	if len(s.byEnv) == 0 {
		return nil
	}
	return s
}

func newSet(p *policy.Policy, find Value) *Set {
	s := &Set{policy: p, byEnv: make(map[string]known), placed: new(search)}
	if p == nil || find == nil {
		return s
	}
	for _, secret := range p.Secrets() {
		if _, done := s.byEnv[secret.Env]; done {
			continue
		}
		if placeholder, value, ok := find(secret.Env); ok && placeholder != "" {
			s.byEnv[secret.Env] = known{placeholder, value}
			s.placed.add(placeholder, secret.Env, "")
		}
	}
	return s
}

// InHead reports where placeholders stand in the head of a request, as
// policy.Head.Placed. Credentials
// for the gate itself (Proxy-Authorization) are not looked at: they go no further.
func (s *Set) InHead(path, query string, h http.Header) (out map[string][]string) {
	if s == nil {
		return nil
	}
	note := func(text, field string) {
		for _, env := range s.placed.all(text) {
			if out == nil {
				out = make(map[string][]string)
			}
			out[env] = append(out[env], field)
		}
	}
	note(path, "")
	note(query, "")
	for name, values := range h {
		if name == "Proxy-Authorization" {
			continue
		}
		for _, v := range values {
			note(v, name)
		}
	}
	return out
}

// Substitute replaces placeholders in h, the outgoing header of an allowed request
// to host and port: each secret in the one field that it names, and only if it
// goes there.
//
// Threat: a program inside aims a secret at a host, a port or a field of its
// choice -> anywhere else the placeholder stays what it is, a string worth nothing,
// and the policy denies the request -> an origin that is named gets the value and
// may do with it what it likes.
func (s *Set) Substitute(host policy.Host, port uint16, h http.Header) {
	if s == nil {
		return
	}
	for _, secret := range s.policy.SecretsFor(host, port) {
		known, ok := s.byEnv[secret.Env]
		if !ok {
			continue
		}
		values := h[http.CanonicalHeaderKey(secret.Header)]
		for i, v := range values {
			values[i] = reveal(v, known.placeholder, known.value)
		}
	}
}

// reveal replaces the placeholder in one field value, also in
// Basic credentials (RFC 7617), as git and pip send tokens.
func reveal(field, placeholder, value string) string {
	const basic = "basic "
	if len(field) > len(basic) && strings.EqualFold(field[:len(basic)], basic) {
		plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(field[len(basic):]))
		if err == nil && strings.Contains(string(plain), placeholder) {
			plain = []byte(strings.ReplaceAll(string(plain), placeholder, value))
			return field[:len(basic)] + base64.StdEncoding.EncodeToString(plain)
		}
	}
	return strings.ReplaceAll(field, placeholder, value)
}
