package fake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	"egressd/sandbox/vercel/fake/internal/reply"
)

// pinned is how an image is shown: by its digest.
func pinned(image string) string {
	if image == "" {
		return ""
	}
	name, _ := splitImage(image)
	sum := sha256.Sum256([]byte(image))
	return name + "@sha256:" + hex.EncodeToString(sum[:])
}

// find reports the sandbox that r names.
func (s *Server) find(r *http.Request) (*box, error) {
	project, err := s.queryProject(r, "projectId")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.sandboxes[key{project, r.PathValue("name")}]
	if b == nil {
		return nil, reply.NotFound("Named sandbox '%s' not found for this project.", r.PathValue("name"))
	}
	return b, nil
}

func (s *Server) getSandbox(w http.ResponseWriter, r *http.Request) error {
	b, err := s.find(r)
	if err != nil {
		return err
	}
	a := answer{Resumed: ptr(false)}
	switch r.URL.Query().Get("resume") {
	case "", "false":
	case "true":
		resumed, err := s.resume(r.Context(), b)
		if err != nil {
			return err
		}
		a.Resumed = &resumed
	default:
		return reply.BadRequest("Invalid request: `resume` should be boolean.")
	}
	s.mu.Lock()
	a.Sandbox, a.Session, a.Routes = b.json(), b.current.json(), b.current.routesJSON()
	s.mu.Unlock()
	return reply.JSON(w, http.StatusOK, a)
}

// resume makes sure that b has a session that runs or is about to. It reports
// whether it booted one.
func (s *Server) resume(ctx context.Context, b *box) (bool, error) {
	for {
		s.mu.Lock()
		ses, busy := b.current, b.resuming
		switch {
		case b.gone:
			s.mu.Unlock()
			return false, reply.NotFound("Named sandbox '%s' not found for this project.", b.name)
		case busy != nil:
		case ses.status == statusRunning || ses.status == statusPending:
			s.mu.Unlock()
			return false, nil
		case !ses.over(): // on its way to an end
			busy = ses.ended
		default:
			return true, s.resumeStopped(b)
		}
		s.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return false, errSandboxStopping
		}
	}
}

// resumeStopped boots a session of b from its last snapshot. s.mu is held, and
// given back.
func (s *Server) resumeStopped(b *box) error {
	from := s.usable(b.currentSnapshot)
	if from == nil {
		err := errNoSnapshot
		if b.lost || b.currentSnapshot != "" {
			err = errSnapshotGone
		}
		s.mu.Unlock()
		return err
	}
	before := b.current
	ses, err := s.newSession(b, from)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	done := make(chan struct{})
	b.resuming = done
	s.mu.Unlock()
	err = s.startSession(ses, from, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	b.resuming = nil
	close(done)
	if err != nil {
		b.current = before
	}
	return err
}

func (s *Server) listSandboxes(w http.ResponseWriter, r *http.Request) error {
	project, err := s.queryProject(r, "project")
	if err != nil {
		return err
	}
	p, err := reply.ParsePage(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	less, err := sandboxOrder(q.Get("sortBy"))
	if err != nil {
		return err
	}
	prefix := q.Get("namePrefix")
	if prefix != "" && q.Get("sortBy") != "name" {
		return reply.BadRequest("Invalid request: `namePrefix` needs `sortBy` to be \"name\".")
	}
	tag, value, err := tagFilter(q["tags"])
	if err != nil {
		return err
	}
	s.mu.Lock()
	var list []*box
	for k, b := range s.sandboxes {
		v, tagged := b.tags[tag]
		if k.project == project && strings.HasPrefix(k.name, prefix) && (tag == "" || tagged && v == value) &&
			(q.Get("status") == "" || q.Get("status") == b.current.status) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, less)
	list, pagination := reply.Cut(p, list, func(b *box) string { return b.name })
	out := []*sandboxJSON{}
	for _, b := range list {
		out = append(out, b.json())
	}
	s.mu.Unlock()
	return reply.JSON(w, http.StatusOK, map[string]any{"sandboxes": out, "pagination": pagination})
}

// sandboxOrder reports how to sort. Those that are equal have the order in
// which they were made.
func sandboxOrder(by string) (func(a, b *box) int, error) {
	first := func(a, b *box) int { return 0 }
	switch by {
	case "", "createdAt":
	case "name":
		first = func(a, b *box) int { return strings.Compare(a.name, b.name) }
	case "statusUpdatedAt":
		first = func(a, b *box) int { return int(a.statusAt - b.statusAt) }
	case "currentSnapshotId":
		first = func(a, b *box) int { return strings.Compare(a.currentSnapshot, b.currentSnapshot) }
	default:
		return nil, reply.BadRequest("Invalid request: `sortBy` should be equal to one of the allowed values \"createdAt, name, statusUpdatedAt, currentSnapshotId\".")
	}
	return func(a, b *box) int {
		if n := first(a, b); n != 0 {
			return n
		}
		return a.order - b.order
	}, nil
}

func tagFilter(given []string) (tag, value string, err error) {
	if len(given) == 0 {
		return "", "", nil
	}
	tag, value, ok := strings.Cut(given[0], ":")
	if len(given) > 1 || !ok || tag == "" {
		return "", "", reply.BadRequest("Invalid request: `tags` should be one filter key:value.")
	}
	return tag, value, nil
}

func (s *Server) patchSandbox(w http.ResponseWriter, r *http.Request) error {
	b, err := s.find(r)
	if err != nil {
		return err
	}
	var body createBody
	if err := reply.Decode(r, &body); err != nil {
		return err
	}
	if body.Name != nil || body.ProjectID != nil || body.Runtime != nil || body.Image != nil || body.Source != nil {
		return reply.BadRequest("Invalid request: only the configuration of later sessions can be changed.")
	}
	a, err := s.update(b, &body)
	if err != nil {
		return err
	}
	return reply.JSON(w, http.StatusOK, a)
}

func (s *Server) update(b *box, body *createBody) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := b.settings
	if err := changed.merge(body); err != nil {
		return answer{}, err
	}
	if err := s.drives.Check(b.project, changed.mounts); err != nil {
		return answer{}, err
	}
	if id := body.CurrentSnapshotID; id != nil {
		snap := s.usable(*id)
		if snap == nil || snap.project != b.project {
			return answer{}, errSnapshotGone
		}
		b.currentSnapshot, b.lost = *id, false
	}
	if body.Ports != nil && (b.current.status == statusRunning || b.current.status == statusPending) {
		if err := s.setPorts(b.current, changed.ports); err != nil {
			return answer{}, err
		}
	}
	b.settings, b.updated = changed, nowMs()
	return answer{Sandbox: b.json(), Routes: b.current.routesJSON()}, nil
}

func (s *Server) deleteSandbox(w http.ResponseWriter, r *http.Request) error {
	b, err := s.find(r)
	if err != nil {
		return err
	}
	orphans := r.URL.Query().Get("deleteOrphanSnapshots") == "true"
	s.mu.Lock()
	if b.gone { // another request deletes it
		s.mu.Unlock()
		return reply.NotFound("Named sandbox '%s' not found for this project.", b.name)
	}
	b.gone = true
	ses := b.current
	s.mu.Unlock()
	s.stop(ses)
	s.mu.Lock()
	delete(s.sandboxes, b.key)
	shown := b.json()
	var drop []*snapshot
	if orphans {
		drop = s.orphans(b)
	}
	s.mu.Unlock()
	for _, snap := range drop {
		s.dropSnapshot(snap)
	}
	return reply.JSON(w, http.StatusOK, answer{Sandbox: shown})
}

func (s *Server) forkSandbox(w http.ResponseWriter, r *http.Request) error {
	b, err := s.find(r)
	if err != nil {
		return err
	}
	var body createBody
	if err := reply.Decode(r, &body); err != nil {
		return err
	}
	if body.Source != nil || body.Runtime != nil || body.CurrentSnapshotID != nil {
		return reply.BadRequest("Invalid request: a fork has the source of what it is forked from.")
	}
	s.mu.Lock()
	set := b.settings
	from := s.usable(b.currentSnapshot)
	s.mu.Unlock()
	if body.Image != nil && from == nil {
		set.runtime = ""
		if err := set.mergeImage(&body, true); err != nil {
			return err
		}
	}
	if err := errors.Join(set.merge(&body), s.findImage(set.image)); err != nil {
		return err
	}
	return s.makeSandbox(w, key{b.project, nameOf(&body)}, set, from, nil)
}
