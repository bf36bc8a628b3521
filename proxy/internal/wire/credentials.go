package wire

import (
	"encoding/base64"
	"strings"
)

// MaxToken bounds a token: longer than any that is handed out, and no longer
// than it is worth to hash.
const MaxToken = 1 << 10

// Credentials are what a client sent to authenticate. The zero Credentials are
// those of a client that sent none.
type Credentials struct {
	Token string
	Sent  bool   // there were any
	Other bool   // in a scheme that is not Basic
	Bad   string // why they cannot be read; "": they can
}

// BasicCredentials reads the one value of a Proxy-Authorization field (RFC 7617
// section 2). The user name is the token; the password is ignored.
func BasicCredentials(field string, sent bool) Credentials {
	if !sent {
		return Credentials{}
	}
	scheme, rest, _ := strings.Cut(field, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return Credentials{Sent: true, Other: true}
	}
	// Strict, so that there is one spelling of each token.
	plain, err := base64.StdEncoding.Strict().DecodeString(strings.TrimLeft(rest, " "))
	if err != nil || strings.ContainsAny(rest, "\r\n") {
		return Credentials{Sent: true, Bad: "the credentials in Proxy-Authorization are not base64"}
	}
	user, _, ok := strings.Cut(string(plain), ":")
	if !ok {
		return Credentials{Sent: true, Bad: "the credentials in Proxy-Authorization have no colon"}
	}
	return UserCredentials(user)
}

// UserCredentials are those of a client that sent a user name.
func UserCredentials(user string) Credentials {
	c := Credentials{Token: user, Sent: true}
	switch {
	case user == "":
		c.Bad = "the user name of the credentials is empty; it is the session token"
	case len(user) > MaxToken:
		c.Bad = "the user name of the credentials is too long for a session token"
	case strings.ContainsFunc(user, func(r rune) bool { return r < ' ' || r == 0x7f }):
		c.Bad = "the user name of the credentials holds a control byte"
	}
	return c
}

// Missing says, to a client that is not known by them, what is missing.
func (c Credentials) Missing() string {
	switch {
	case c.Other:
		return "the credentials are not Basic"
	case c.Sent:
		return "the session token is not known here (any more)"
	}
	return "no credentials were sent, and nothing else says which policy is yours"
}
