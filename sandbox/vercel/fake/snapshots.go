package fake

import (
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"egressd/sandbox/vercel/fake/internal/reply"
	"egressd/sandbox/vercel/fake/machine"
)

// maxSnapshots bounds how many snapshots have a disk.
const maxSnapshots = 512

// snapshot is a disk that sandboxes can be made from.
type snapshot struct {
	id, session, box, project string
	parent                    string
	order                     int
	method                    string
	region                    string
	status                    string
	size                      int64
	created, updated, used    int64
	life                      int64 // ms after its last use; 0: for ever

	runtime, image string
	legacy         bool

	using sync.RWMutex // held while the disk is copied; written to remove it
	disk  *machine.Disk
}

// json is what the API shows. s.mu is held.
func (n *snapshot) json() *snapshotJSON {
	return &snapshotJSON{
		ID: n.id, SourceSessionID: n.session, Architecture: runtime.GOARCH, Region: n.region, Regions: []string{n.region},
		Status: n.status, SizeBytes: n.size, ExpiresAt: n.expires(), CreatedAt: n.created, UpdatedAt: n.updated, LastUsedAt: n.used,
		CreationMethod: n.method, ParentID: n.parent,
	}
}

func (n *snapshot) expires() int64 {
	if n.life == 0 {
		return 0
	}
	return n.used + n.life
}

// newSnapshot makes a snapshot of ses, without a disk yet. life is how long it
// lives; nil: as the sandbox says.
func (s *Server) newSnapshot(ses *session, method string, life *int64) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := ses.box
	s.order++
	now := nowMs()
	n := &snapshot{
		id: snapshotID(), session: ses.id, box: b.name, project: b.project, parent: ses.source, order: s.order, method: method,
		region: ses.region, status: "created", created: now, updated: now, used: now, life: snapshotLifeMs,
		runtime: b.runtime, image: b.image, legacy: b.legacy,
	}
	if life == nil {
		life = b.snapshotExpiration
	}
	if life != nil {
		n.life = *life
	}
	return n
}

// keepSnapshot makes n known, and its sandbox's. What is too much goes. s.mu is
// held.
func (s *Server) keepSnapshot(b *box, n *snapshot) {
	s.snapshots[n.id] = n
	if !b.gone {
		b.currentSnapshot, b.lost = n.id, false
	}
	var own []*snapshot
	for _, o := range sorted(s.snapshots, func(o *snapshot) int { return o.order }) {
		if o.box == b.name && o.project == b.project && o.status == "created" {
			own = append(own, o)
		}
	}
	keep := maxSnapshots
	if b.keep != nil {
		keep = b.keep.Count
	}
	s.trimSnapshots()
	for ; len(own) > keep; own = own[1:] {
		old := own[0]
		switch k := b.keep; {
		case k != nil && k.DeleteEvicted != nil && !*k.DeleteEvicted:
			if k.Expiration != nil {
				old.life = *k.Expiration
			}
		case s.enterLocked():
			go func() {
				defer s.wg.Done()
				s.dropSnapshot(old)
			}()
		}
	}
}

// trimSnapshots drops the oldest snapshots that are too many for the double, and
// forgets the oldest that were dropped. s.mu is held.
func (s *Server) trimSnapshots() {
	disks := 0
	for _, n := range slices.Backward(sorted(s.snapshots, func(n *snapshot) int { return n.order })) {
		if n.status == "created" {
			disks++
		}
		if disks > maxSnapshots && n.status == "created" && s.enterLocked() {
			go func() {
				defer s.wg.Done()
				s.dropSnapshot(n)
			}()
		}
		if n.status == "deleted" && len(s.snapshots) > 2*maxSnapshots {
			delete(s.snapshots, n.id)
		}
	}
}

// usable reports the snapshot id unless it is gone; nil then. s.mu is held.
func (s *Server) usable(id string) *snapshot {
	n := s.snapshots[id]
	if n == nil || n.status != "created" {
		return nil
	}
	if e := n.expires(); e > 0 && nowMs() >= e {
		return nil
	}
	return n
}

// dropSnapshot removes the disk of n when no copy of it is under way.
func (s *Server) dropSnapshot(n *snapshot) {
	s.mu.Lock()
	n.status, n.updated = "deleted", nowMs()
	for _, b := range s.sandboxes {
		if b.currentSnapshot == n.id {
			b.currentSnapshot, b.lost = "", true
		}
	}
	s.mu.Unlock()
	n.using.Lock()
	defer n.using.Unlock()
	if n.disk == nil {
		return
	}
	if err := n.disk.Remove(); err != nil {
		s.cfg.Log.Error("a snapshot was not removed", "snapshot", n.id, "error", err)
	}
	n.disk = nil
}

// orphans lists the snapshots of b that no other sandbox stands on. s.mu is
// held.
func (s *Server) orphans(b *box) []*snapshot {
	used := map[string]bool{}
	for _, o := range s.sandboxes {
		used[o.currentSnapshot] = true
	}
	var out []*snapshot
	for _, n := range s.snapshots {
		if n.box == b.name && n.project == b.project && n.status == "created" && !used[n.id] {
			out = append(out, n)
		}
	}
	return out
}

// sourceSnapshot reports the snapshot that a create names; nil: none.
func (s *Server) sourceSnapshot(project string, b *sourceBody) (*snapshot, error) {
	if b == nil || b.Type != "snapshot" {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.usable(b.SnapshotID)
	if n == nil || n.project != project {
		return nil, errSnapshotGone
	}
	return n, nil
}

func (s *Server) createSnapshot(w http.ResponseWriter, r *http.Request) error {
	ses, err := s.running(r)
	if err != nil {
		return err
	}
	b := struct {
		Expiration *int64 `json:"expiration"`
	}{}
	if err := reply.Decode(r, &b); err != nil {
		return err
	}
	if b.Expiration != nil {
		if err := checkExpiration("expiration", *b.Expiration); err != nil {
			return err
		}
	}
	s.mu.Lock()
	if err := ses.unavailable(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.leave(ses, statusSnapshotting)
	ses.snapped = nowMs()
	s.mu.Unlock()
	n := s.newSnapshot(ses, "manual", b.Expiration)
	s.pause(s.cfg.Delays.Snapshot)
	s.mu.Lock()
	shown := ses.json()
	s.mu.Unlock()
	ses.m.Stop()
	s.finish(ses, n)
	<-ses.ended
	s.mu.Lock()
	made := n.json()
	s.mu.Unlock()
	if made.Status != "created" {
		return reply.NewError(http.StatusInternalServerError, "internal_server_error", "The snapshot could not be made.")
	}
	return reply.JSON(w, http.StatusCreated, answer{Snapshot: made, Session: shown})
}

// aSnapshot reports the snapshot that r names.
func (s *Server) aSnapshot(r *http.Request) (*snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.snapshots[r.PathValue("id")]
	if n == nil || !s.sees(r, n.project) {
		return nil, reply.NotFound("Snapshot '%s' not found.", r.PathValue("id"))
	}
	if s.usable(n.id) == nil {
		return nil, errSnapshotGone
	}
	return n, nil
}

func (s *Server) getSnapshot(w http.ResponseWriter, r *http.Request) error {
	n, err := s.aSnapshot(r)
	if err != nil {
		return err
	}
	return s.writeSnapshot(w, n)
}

func (s *Server) writeSnapshot(w http.ResponseWriter, n *snapshot) error {
	s.mu.Lock()
	a := answer{Snapshot: n.json()}
	s.mu.Unlock()
	return reply.JSON(w, http.StatusOK, a)
}

func (s *Server) deleteSnapshot(w http.ResponseWriter, r *http.Request) error {
	n, err := s.aSnapshot(r)
	if err != nil {
		return err
	}
	s.dropSnapshot(n)
	return s.writeSnapshot(w, n)
}

// listOf lists the snapshots of a project, oldest first. s.mu is held.
func (s *Server) listOf(project, name string) []*snapshot {
	var list []*snapshot
	for _, n := range sorted(s.snapshots, func(n *snapshot) int { return n.order }) {
		if n.project == project && (name == "" || n.box == name) && s.usable(n.id) != nil {
			list = append(list, n)
		}
	}
	return list
}

func (s *Server) listSnapshots(w http.ResponseWriter, r *http.Request) error {
	project, err := s.queryProject(r, "project")
	if err != nil {
		return err
	}
	p, err := reply.ParsePage(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	list, pagination := reply.Cut(p, s.listOf(project, r.URL.Query().Get("name")), func(n *snapshot) string { return n.id })
	out := []*snapshotJSON{}
	for _, n := range list {
		out = append(out, n.json())
	}
	s.mu.Unlock()
	return reply.JSON(w, http.StatusOK, map[string]any{"snapshots": out, "pagination": pagination})
}

// node is one snapshot of a tree, with those that have the same parent.
type node struct {
	Snapshot *snapshotJSON   `json:"snapshot"`
	Siblings []*snapshotJSON `json:"siblings"`
	Count    string          `json:"count"` // of the siblings, as text
}

// snapshotTree walks from one snapshot, the anchor: to what it was made from, or
// (sortOrder asc) to what was made from it, each time the newest. The next page
// begins behind the last snapshot of this one, which is its cursor: clients send
// it as snapshotId.
func (s *Server) snapshotTree(w http.ResponseWriter, r *http.Request) error {
	project, err := s.queryProject(r, "project")
	if err != nil {
		return err
	}
	p, err := reply.ParsePage(r)
	if err != nil {
		return err
	}
	body, err := s.tree(project, r.URL.Query().Get("snapshotId"), p)
	if err != nil {
		return err
	}
	return reply.JSON(w, http.StatusOK, body)
}

func (s *Server) tree(project, id string, p reply.Page) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		return nil, reply.BadRequest("Invalid request: missing required property `snapshotId`.")
	}
	anchor := s.usable(id)
	if anchor == nil || anchor.project != project {
		return nil, errSnapshotGone
	}
	all := s.listOf(project, "")
	nodes, pagination := []node{}, reply.Pagination{}
	last := anchor
	for n := next(anchor, all, p.Ascending); n != nil; n = next(n, all, p.Ascending) {
		if len(nodes) == p.Limit {
			pagination.Next = ptr(last.id)
			break
		}
		nodes = append(nodes, nodeOf(n, all))
		last = n
	}
	pagination.Count = len(nodes)
	return map[string]any{"snapshots": nodes, "anchor": nodeOf(anchor, all), "pagination": pagination}, nil
}

// next reports what n was made from, or of what was made from it the newest;
// nil: nothing.
func next(n *snapshot, all []*snapshot, down bool) *snapshot {
	for _, o := range slices.Backward(all) {
		if down && o.parent == n.id || !down && o.id == n.parent {
			return o
		}
	}
	return nil
}

// nodeOf shows n among all snapshots of its project.
func nodeOf(n *snapshot, all []*snapshot) node {
	out := node{Snapshot: n.json(), Siblings: []*snapshotJSON{}}
	for _, o := range all {
		if o != n && o.parent == n.parent && (n.parent != "" || o.box == n.box) {
			out.Siblings = append(out.Siblings, o.json())
		}
	}
	out.Count = strconv.Itoa(len(out.Siblings))
	return out
}
