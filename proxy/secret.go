package proxy

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"egressd/policy"
)

// substitute puts secret values in the place of their placeholders, in the one
// header field each secret names and towards the hosts it names, over verified
// TLS alone. h is the outgoing header of a request that has been allowed.
//
// Threat: a program inside aims a secret at a host or a field of its choice ->
// anywhere else the placeholder stays what it is, a string worth nothing -> an
// origin that is named may echo the field it was sent; the response is not
// searched.
func (s *Server) substitute(p *policy.Policy, r policy.Request, h http.Header, tls bool) {
	if p == nil || s.SecretValue == nil || !tls {
		return
	}
	for _, secret := range p.Secrets() {
		values := h[http.CanonicalHeaderKey(secret.Header)]
		if len(values) == 0 || !slices.Contains(secret.Hosts, r.Host) {
			continue
		}
		placeholder, value, ok := s.SecretValue(secret.Env)
		if !ok || placeholder == "" {
			continue
		}
		for i, v := range values {
			values[i] = reveal(v, placeholder, value)
		}
	}
}

// Rewriter may change a request that was allowed and is about to leave for host
// over verified TLS: its fields and its Host. What was judged stays what is
// dialled. It must be quick and safe for concurrent use.
type Rewriter func(host string, r *http.Request)

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
