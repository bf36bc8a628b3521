package proxy

import (
	"encoding/base64"
	"strings"
)

// maxToken bounds a token: longer than any that is handed out, and no longer
// than it is worth to hash.
const maxToken = 1 << 10

// credentials are what a client sent to authenticate.
type credentials struct {
	token string
	sent  bool   // there were any
	other bool   // in a scheme that is not Basic
	bad   string // they cannot be read, and why
}

// basicCredentials reads the one value of a Proxy-Authorization field (RFC 7617
// section 2). The user name is the token; the password is ignored.
func basicCredentials(field string, sent bool) credentials {
	if !sent {
		return credentials{}
	}
	scheme, rest, _ := strings.Cut(field, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return credentials{sent: true, other: true}
	}
	// Strict, so that there is one spelling of each token.
	plain, err := base64.StdEncoding.Strict().DecodeString(strings.TrimLeft(rest, " "))
	if err != nil || strings.ContainsAny(rest, "\r\n") {
		return credentials{sent: true, bad: "the credentials in Proxy-Authorization are not base64"}
	}
	user, _, ok := strings.Cut(string(plain), ":")
	if !ok {
		return credentials{sent: true, bad: "the credentials in Proxy-Authorization have no colon"}
	}
	return userCredentials(user)
}

// userCredentials are those of a client that sent a user name.
func userCredentials(user string) credentials {
	c := credentials{token: user, sent: true}
	switch {
	case user == "":
		c.bad = "the user name of the credentials is empty; it is the session token"
	case len(user) > maxToken:
		c.bad = "the user name of the credentials is too long for a session token"
	case strings.ContainsFunc(user, func(r rune) bool { return r < ' ' || r == 0x7f }):
		c.bad = "the user name of the credentials holds a control byte"
	}
	return c
}

// stranger says, to a client that Route does not know, what is missing.
func (c credentials) stranger() string {
	switch {
	case c.other:
		return "the credentials are not Basic"
	case c.sent:
		return "the session token is not known here (any more)"
	}
	return "no credentials were sent, and nothing else says which policy is yours"
}
