// Package account chooses the credentials for Vercel Sandbox: token, team and
// project. It reads no environment; the caller passes flags and variables:
//
//	creds, err := account.Sources{EnvToken: token}.Resolve(time.Now())
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

// Sources are the places where credentials come from, read by the
// caller: what was given by flags, and the environment's variables.
type Sources struct {
	Token, TeamID, ProjectID string // flags

	EnvToken     string // VERCEL_TOKEN
	EnvTeamID    string // VERCEL_TEAM_ID
	EnvProjectID string // VERCEL_PROJECT_ID
	EnvOIDCToken string // VERCEL_OIDC_TOKEN
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
type ExpiredError struct{ At time.Time }

// Error implements error.
func (e *ExpiredError) Error() string {
	return "the Vercel OIDC token has expired at " + e.At.UTC().Format(time.RFC3339) + ": get a new one (vercel env pull) and set VERCEL_OIDC_TOKEN"
}

// Resolve chooses a token: the flag's, VERCEL_TOKEN, VERCEL_OIDC_TOKEN. Team and
// project are the flags', else the variables'; but a token that names its own
// team belongs to that one. A token without a project is an error, as is one
// that has expired at now.
func (s Sources) Resolve(now time.Time) (Credentials, error) {
	c := Credentials{
		Token:     first(s.Token, s.EnvToken, s.EnvOIDCToken),
		TeamID:    first(s.TeamID, s.EnvTeamID),
		ProjectID: first(s.ProjectID, s.EnvProjectID),
	}
	if c.Token == "" {
		return Credentials{}, &MissingError{Missing: []string{"VERCEL_TOKEN or VERCEL_OIDC_TOKEN"}}
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return Credentials{}, errors.New("the Vercel token holds a character that no token has")
	}
	claims, isJWT := ReadClaims(c.Token)
	if fromOIDC := c.Token == strings.TrimSpace(s.EnvOIDCToken) && first(s.Token, s.EnvToken) == ""; fromOIDC && !isJWT {
		return Credentials{}, errors.New("VERCEL_OIDC_TOKEN is not a token that names its team (claim owner_id) and project (claim project_id)")
	}
	if isJWT {
		c.OIDC, c.TeamID, c.ProjectID, c.Expires = true, claims.TeamID, first(s.ProjectID, s.EnvProjectID, claims.ProjectID), claims.Expires
		if !c.Expires.IsZero() && !now.Before(c.Expires) {
			return Credentials{}, &ExpiredError{At: c.Expires}
		}
	}
	if c.ProjectID == "" {
		return Credentials{}, &MissingError{Missing: []string{"VERCEL_PROJECT_ID"}}
	}
	return c, nil
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
