// Package account chooses the credentials for Vercel Sandbox: token, team and
// project. It reads no environment; the caller passes flags and variables:
//
//	places := []account.Place{{Name: "VERCEL_TOKEN", Token: token}}
//	creds, err := account.Sources{Tokens: places}.Resolve(time.Now())
package account

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"
)

// Credentials identify a client to the service. They print without the token.
type Credentials struct {
	Token     string
	TeamID    string // "": the token's own team
	ProjectID string
	Expires   time.Time // zero: not known
	OIDC      bool      // the token is a JWT that names team and project
	From      string    // the name of the token's Place
}

// LogValue keeps the token out of logs.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String is the credentials without the token.
func (c Credentials) String() string {
	if c.Token == "" {
		return "no credentials"
	}
	return "credentials of project " + c.ProjectID + " of team " + c.TeamID
}

// GoString keeps the token out of %#v.
func (c Credentials) GoString() string { return c.String() }

// Place is somewhere a token may be.
type Place struct {
	Name    string // for people: "VERCEL_TOKEN"
	Token   string // "": there is none
	OIDC    bool   // it must be a JWT that names team and project
	Weak    bool   // one that has expired is passed over, if a later place has another
	Expires time.Time
}

// GoString keeps the token out of %#v.
func (p Place) GoString() string { return p.Name }

// String keeps the token out of %v.
func (p Place) String() string { return p.Name }

// Sources are the places where credentials come from, read by the caller. The
// first of each list counts.
type Sources struct {
	Tokens              []Place
	TeamIDs, ProjectIDs []string
	// Link is what the directory is linked to: it counts last, and as a pair, but
	// for a team that nothing else names.
	LinkTeamID, LinkProjectID string
}

// GoString keeps tokens out of %#v.
func (Sources) GoString() string { return "credential sources" }

// String keeps tokens out of %v.
func (Sources) String() string { return "credential sources" }

// LogValue keeps tokens out of logs.
func (Sources) LogValue() slog.Value { return slog.StringValue("credential sources") }

// MissingError says what to set.
type MissingError struct {
	Missing []string // variables; one of a pair reads "VERCEL_TOKEN or VERCEL_OIDC_TOKEN"
}

// Error implements error.
func (e *MissingError) Error() string {
	return "no credentials for Vercel Sandbox: set " + strings.Join(e.Missing, " and ")
}

// ExpiredError reports an expired token.
type ExpiredError struct {
	At   time.Time
	From string // "": not known
}

// Error implements error.
func (e *ExpiredError) Error() string {
	from := ""
	if e.From != "" {
		from = " (" + e.From + ")"
	}
	return "the Vercel token has expired at " + e.At.UTC().Format(time.RFC3339) + from + ": get a new one: vercel env pull, or vercel login"
}

// Resolve chooses the first token, and team and project; but a token that names
// its own team belongs to that one. A token without a project is an error, as is
// one that has expired at now.
func (s Sources) Resolve(now time.Time) (Credentials, error) {
	at, expired := s.place(now)
	token := strings.TrimSpace(at.Token)
	switch {
	case expired != nil:
		return Credentials{}, expired
	case token == "":
		return Credentials{}, &MissingError{Missing: []string{"VERCEL_TOKEN or VERCEL_OIDC_TOKEN"}}
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return Credentials{}, errors.New("the Vercel token holds a character that no token has")
	}
	c := Credentials{Token: token, TeamID: first(s.TeamIDs...), ProjectID: first(s.ProjectIDs...), From: at.Name, Expires: at.Expires}
	claims, isJWT := ReadClaims(c.Token)
	if at.OIDC && !isJWT {
		return Credentials{}, errors.New("VERCEL_OIDC_TOKEN is not a token that names its team (claim owner_id) and project (claim project_id)")
	}
	if isJWT {
		c.OIDC, c.TeamID, c.ProjectID, c.Expires = true, claims.TeamID, first(c.ProjectID, claims.ProjectID), claims.Expires
	}
	if c.ProjectID == "" {
		c.ProjectID, c.TeamID = s.LinkProjectID, first(c.TeamID, s.LinkTeamID)
	}
	if c.ProjectID == "" {
		return Credentials{}, &MissingError{Missing: []string{"VERCEL_PROJECT_ID"}}
	}
	return c, nil
}

// place chooses the token's. The error is that of one which has expired.
func (s Sources) place(now time.Time) (Place, error) {
	var expired error
	for _, p := range s.Tokens {
		token := strings.TrimSpace(p.Token)
		if token == "" {
			continue
		}
		ends := p.Expires
		if claims, ok := ReadClaims(token); ok {
			ends = claims.Expires
		}
		if ends.IsZero() || now.Before(ends) {
			return p, nil
		}
		if expired == nil {
			expired = &ExpiredError{At: ends, From: p.Name}
		}
		if !p.Weak {
			break
		}
	}
	return Place{}, expired
}

func first(all ...string) string {
	for _, s := range all {
		if s = strings.TrimSpace(s); s != "" {
			return s
		}
	}
	return ""
}

// Claims are the contents of a token.
type Claims struct {
	TeamID    string
	ProjectID string    // "": none
	Expires   time.Time // zero: unknown
}

// ReadClaims reads the middle of a JWT; ok is false for another token, and for
// one that names no team. Its signature is the service's to check.
func ReadClaims(token string) (c Claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return c, false
	}
	var in struct {
		Owner   string  `json:"owner_id"`
		Project string  `json:"project_id"`
		Expires float64 `json:"exp"` // seconds since 1970
	}
	if json.Unmarshal(text, &in) != nil || in.Owner == "" {
		return c, false
	}
	c = Claims{TeamID: in.Owner, ProjectID: in.Project}
	if in.Expires > 0 && in.Expires < 1e12 {
		c.Expires = time.Unix(int64(in.Expires), 0)
	}
	return c, true
}
