package fake

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// claims are what an OIDC token says about its holder.
type claims struct {
	Owner   string `json:"owner_id"`
	Project string `json:"project_id"`
	Expires int64  `json:"exp"`
}

// bearer reports the token that r carries; "" none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// claimsOf reads the middle of a JWT, as the SDKs do; ok is false for a token
// that is not one.
func claimsOf(token string) (c claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(data, &c) != nil {
		return c, false
	}
	return c, c.Owner != ""
}

// authorize checks the token and the team of a request.
func (s *Server) authorize(r *http.Request) error {
	token := bearer(r)
	if token == "" {
		return reply.NewError(http.StatusUnauthorized, "forbidden", "The request is missing an authentication token")
	}
	forbidden := reply.NewError(http.StatusForbidden, "forbidden", "Not authorized")
	c, isJWT := claimsOf(token)
	if s.cfg.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.cfg.Token)) != 1 {
		return forbidden
	}
	if isJWT && c.Expires > 0 && time.Now().After(time.Unix(c.Expires, 0)) {
		return reply.NewError(http.StatusForbidden, "forbidden", "The token has expired")
	}
	team := r.URL.Query().Get("teamId")
	if isJWT && team != "" && team != c.Owner || s.cfg.TeamID != "" && team != "" && team != s.cfg.TeamID {
		return forbidden
	}
	return nil
}

// project reports whose project a request is about: the one it names, else the
// token's.
func (s *Server) project(r *http.Request, named *string) (string, error) {
	c, isJWT := claimsOf(bearer(r))
	project := ""
	if named != nil {
		project = *named
	}
	if project == "" && isJWT {
		project = c.Project
	}
	if project == "" {
		return "", reply.BadRequest("Invalid request: missing required property `projectId`.")
	}
	if isJWT && c.Project != "" && project != c.Project {
		return "", reply.NewError(http.StatusForbidden, "forbidden", "Not authorized")
	}
	if s.cfg.ProjectID != "" && project != s.cfg.ProjectID {
		return "", reply.NotFound("Project not found.")
	}
	return project, nil
}

// queryProject is project for requests that name it in the query.
func (s *Server) queryProject(r *http.Request, parameter string) (string, error) {
	v := r.URL.Query().Get(parameter)
	return s.project(r, &v)
}

// sees reports whether the client of r may see what belongs to project.
func (s *Server) sees(r *http.Request, project string) bool {
	c, isJWT := claimsOf(bearer(r))
	return !isJWT || c.Project == "" || c.Project == project
}

// The rate limits that the hosted service reports, in each window.
const (
	limitCreate  = 20
	limitOther   = 1000
	windowLength = time.Minute
)

// window counts requests of one kind.
type window struct {
	ends time.Time
	left int
}

// countRequest reports in headers how many requests are left. The double never
// refuses a request for that; a fault can.
func (s *Server) countRequest(w http.ResponseWriter, r *http.Request) {
	kind, limit := "other", limitOther
	if r.Method == http.MethodDelete || r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/sandboxes") {
		kind, limit = r.Method, limitCreate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	win := s.limits[kind]
	if win == nil || now.After(win.ends) {
		win = &window{ends: now.Add(windowLength), left: limit}
		s.limits[kind] = win
	}
	win.left = max(win.left-1, 0)
	w.Header().Set("X-Ratelimit-Limit", strconv.Itoa(limit))
	w.Header().Set("X-Ratelimit-Remaining", strconv.Itoa(win.left))
	w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(win.ends.Unix(), 10))
}

// hostname is host without its port.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return host
}
