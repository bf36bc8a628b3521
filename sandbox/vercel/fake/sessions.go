package fake

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"egressd/sandbox/vercel/fake/internal/firewall"
	"egressd/sandbox/vercel/fake/internal/reply"
)

// anySession reports the session that r names, whatever its state.
func (s *Server) anySession(r *http.Request) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := s.sessions[r.PathValue("sid")]
	if ses == nil || !s.sees(r, ses.box.project) {
		return nil, reply.NotFound("Sandbox session '%s' not found.", r.PathValue("sid"))
	}
	return ses, nil
}

func (s *Server) getSession(w http.ResponseWriter, r *http.Request) error {
	ses, err := s.anySession(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	a := answer{Session: ses.json(), Routes: ses.routesJSON()}
	s.mu.Unlock()
	return reply.JSON(w, http.StatusOK, a)
}

func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) error {
	project, err := s.queryProject(r, "project")
	if err != nil {
		return err
	}
	p, err := reply.ParsePage(r)
	if err != nil {
		return err
	}
	name := r.URL.Query().Get("name")
	s.mu.Lock()
	var list []*session
	for _, ses := range sorted(s.sessions, func(ses *session) int { return ses.order }) {
		if ses.box.project == project && (name == "" || ses.box.name == name) {
			list = append(list, ses)
		}
	}
	list, pagination := reply.Cut(p, list, func(ses *session) string { return ses.id })
	out := []*sessionJSON{}
	for _, ses := range list {
		out = append(out, ses.json())
	}
	s.mu.Unlock()
	return reply.JSON(w, http.StatusOK, map[string]any{"sessions": out, "pagination": pagination})
}

// stopSession answers when the session has stopped, also when it had before.
func (s *Server) stopSession(w http.ResponseWriter, r *http.Request) error {
	ses, err := s.anySession(r)
	if err != nil {
		return err
	}
	if err := reply.Decode(r, &struct{}{}); err != nil {
		return err
	}
	s.stop(ses)
	s.mu.Lock()
	a := answer{Session: ses.json(), Sandbox: ses.box.json()}
	for _, snap := range s.snapshots {
		if snap.session == ses.id && snap.status == "created" && snap.method == "automatic" {
			a.Snapshot = snap.json()
		}
	}
	s.mu.Unlock()
	return reply.JSON(w, http.StatusOK, a)
}

func (s *Server) extendTimeout(w http.ResponseWriter, r *http.Request) error {
	ses, err := s.running(r)
	if err != nil {
		return err
	}
	b := struct {
		Duration *int64 `json:"duration"`
	}{}
	if err := reply.Decode(r, &b); err != nil {
		return err
	}
	if b.Duration == nil || *b.Duration < minTimeoutMs {
		return reply.BadRequest("Invalid request: `duration` should be >= %d.", minTimeoutMs)
	}
	shown, err := s.extend(ses, *b.Duration)
	if err != nil {
		return err
	}
	return reply.JSON(w, http.StatusOK, answer{Session: shown})
}

func (s *Server) extend(ses *session, ms int64) (*sessionJSON, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ses.unavailable(); err != nil {
		return nil, err
	}
	if ms > maxTimeoutMs || ses.timeout+ms > maxTimeoutMs {
		return nil, reply.BadRequest("Invalid request: the session's timeout should be <= %d.", maxTimeoutMs)
	}
	ses.timeout += ms
	ses.updated = nowMs()
	ses.timer.Reset(time.Duration(ses.started+ses.timeout-ses.updated) * time.Millisecond)
	return ses.json(), nil
}

func (s *Server) setNetworkPolicy(w http.ResponseWriter, r *http.Request) error {
	ses, err := s.running(r)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, reply.MaxBodyBytes))
	if err != nil || !json.Valid(raw) {
		return reply.BadRequest("Invalid JSON")
	}
	p, err := firewall.Parse(raw)
	if err != nil {
		return err
	}
	if err := ses.net.Set(p); err != nil {
		return err
	}
	s.mu.Lock()
	ses.policy, ses.updated = p, nowMs()
	a := answer{Session: ses.json()}
	s.mu.Unlock()
	return reply.JSON(w, http.StatusOK, a)
}
