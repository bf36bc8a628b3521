// Package secret puts secret values in the place of the placeholders that clients
// know.
//
//	if tls { // verified
//		secret.Substitute(policy.Secrets(), host, request.Header, value)
//	}
//
// Whether the connection is one that may carry secrets is the caller's to decide.
package secret

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"egressd/policy"
)

// Value reports the placeholder that clients see for the secret in the
// environment variable env, and its value. ok false: there is none.
type Value func(env string) (placeholder, value string, ok bool)

// Substitute replaces placeholders in h, the outgoing header of an allowed request
// to host: each secret in the one field that it names, and only if host is one of
// its hosts.
//
// Threat: a program inside aims a secret at a host or a field of its choice ->
// anywhere else the placeholder stays what it is, a string worth nothing -> an
// origin that is named may echo the field it was sent; the response is not
// searched.
func Substitute(secrets []policy.Secret, host policy.Host, h http.Header, find Value) {
	for _, secret := range secrets {
		values := h[http.CanonicalHeaderKey(secret.Header)]
		if len(values) == 0 || !slices.Contains(secret.Hosts, host) {
			continue
		}
		placeholder, value, ok := find(secret.Env)
		if !ok || placeholder == "" {
			continue
		}
		for i, v := range values {
			values[i] = reveal(v, placeholder, value)
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
