package fake

import (
	"net/http"
	"slices"
	"time"

	"egressd/sandbox/vercel/fake/internal/drives"
	"egressd/sandbox/vercel/fake/internal/firewall"
	"egressd/sandbox/vercel/fake/internal/reply"
	"egressd/sandbox/vercel/fake/machine"
)

// The states of a session, VERCEL.md section 4.
const (
	statusPending      = "pending"
	statusRunning      = "running"
	statusStopping     = "stopping"
	statusStopped      = "stopped"
	statusFailed       = "failed"
	statusSnapshotting = "snapshotting"
)

// box is a sandbox: what has a name and, one at a time, sessions.
type box struct {
	key
	settings
	order             int
	created, updated  int64
	current           *session
	currentSnapshot   string
	statusAt          int64
	egress, ingress   int64
	cpuMs, durationMs int64
	gone, lost        bool          // lost: its snapshot was deleted
	resuming          chan struct{} // closed when a resume under way has ended; nil: none
}

// session is one boot of a sandbox's machine. Server.mu guards its fields, except
// those that are set before the session is registered.
type session struct {
	id      string
	box     *box
	order   int
	source  string // the snapshot it was booted from
	cwd     string
	user    machine.User
	runtime string
	vcpus   int
	region  string
	env     map[string]string
	drives  *drives.Hold

	status    string
	timeout   int64
	policy    *firewall.Policy
	routes    []*route
	requested int64
	started   int64
	stopAsked int64
	stopped   int64
	snapped   int64
	updated   int64
	cpuMs     int64
	transfer  *transferJSON

	disk  *machine.Disk    // nil: it was taken or removed
	m     *machine.Machine // nil until it runs
	net   *firewall.Network
	timer *time.Timer

	terminals []string // tokens for terminals that nobody has used

	ready   chan struct{} // closed when it is not pending any more
	bootErr error         // why it failed
	ended   chan struct{} // closed when it is over: stopped or failed

	commands map[string]*command
	history  []*command // in the order they were started
}

// newBox makes a sandbox. s.mu is held.
func (s *Server) newBox(k key, set settings) *box {
	s.order++
	now := nowMs()
	return &box{key: k, settings: set, order: s.order, created: now, updated: now, statusAt: now}
}

// newSession makes the next session of b, from a snapshot or (nil) from
// nothing. s.mu is held.
func (s *Server) newSession(b *box, from *snapshot) (*session, error) {
	living := 0
	for _, ses := range s.sessions {
		if !ses.over() {
			living++
		}
	}
	if living >= maxLivingSessions {
		return nil, reply.NewError(http.StatusTooManyRequests, "resource_limit_exceeded", "Too many sandboxes are running.")
	}
	s.forgetSessions()
	s.order++
	now := nowMs()
	ses := &session{
		id: sessionID(), box: b, order: s.order, cwd: machine.Home, user: machine.ImageUser, runtime: b.runtime,
		vcpus: b.vcpus, region: b.region, env: b.env, status: statusPending, timeout: b.timeout, policy: b.policy,
		requested: now, updated: now, ready: make(chan struct{}), ended: make(chan struct{}), commands: map[string]*command{},
	}
	if b.legacy {
		ses.cwd, ses.user = machine.LegacyCwd, machine.LegacyUser
	} else {
		ses.runtime = shownRuntime
	}
	if from != nil {
		ses.source = from.id
		b.currentSnapshot = from.id
		from.used = now
	}
	var err error
	if ses.drives, err = s.drives.Attach(b.project, b.mounts, ses.id, b.name); err != nil {
		return nil, err
	}
	if err := s.setPorts(ses, b.ports); err != nil {
		ses.drives.Release()
		ses.closeRoutes()
		return nil, err
	}
	b.current, b.statusAt = ses, now
	s.sessions[ses.id] = ses
	return ses, nil
}

// maxSessions bounds how many sessions are remembered after their end.
const maxSessions = 4096

// forgetSessions drops the oldest sessions that are over. s.mu is held.
func (s *Server) forgetSessions() {
	for len(s.sessions) >= maxSessions {
		var oldest *session
		for _, ses := range s.sessions {
			if ses.over() && ses.box.current != ses && (oldest == nil || ses.order < oldest.order) {
				oldest = ses
			}
		}
		if oldest == nil {
			return
		}
		delete(s.sessions, oldest.id)
	}
}

// over reports whether the session has reached an end. s.mu is held.
func (ses *session) over() bool { return ses.status == statusStopped || ses.status == statusFailed }

// stopInBackground stops a session whose time is over.
func (s *Server) stopInBackground(ses *session) {
	if !s.enter() {
		return
	}
	defer s.wg.Done()
	s.stop(ses)
}

// stop ends a session and waits until it has ended. If it has ended or is ending,
// stop only waits.
func (s *Server) stop(ses *session) {
	<-ses.ready
	s.mu.Lock()
	if ses.status != statusRunning {
		s.mu.Unlock()
		<-ses.ended
		return
	}
	s.leave(ses, statusStopping)
	s.mu.Unlock()
	s.pause(s.cfg.Delays.Stop)
	ses.m.Stop()
	s.finish(ses, nil)
	<-ses.ended
}

// leave moves a running session to status. The caller holds s.mu.
func (s *Server) leave(ses *session, status string) {
	now := nowMs()
	ses.status, ses.updated = status, now
	if status == statusStopping {
		ses.stopAsked = now
	}
	ses.closeRoutes()
	ses.box.statusAt, ses.box.updated = now, now
	if ses.timer != nil {
		ses.timer.Stop()
	}
}

// finish ends a session whose machine has ended: usage is added up, and the disk
// becomes a snapshot (made, or an automatic one of a persistent sandbox) or is
// removed. The second call does nothing.
func (s *Server) finish(ses *session, made *snapshot) {
	<-ses.m.Ended()
	s.mu.Lock()
	if ses.over() || ses.status == statusSnapshotting && made == nil {
		s.mu.Unlock()
		return
	}
	if ses.status == statusRunning { // the machine ended by itself
		s.leave(ses, statusStopping)
	}
	disk := ses.disk
	ses.disk = nil
	if disk == nil {
		s.mu.Unlock()
		return // another call finishes it
	}
	automatic := made == nil && ses.box.persistent && !ses.box.gone && !s.closed
	history := slices.Clone(ses.history)
	s.mu.Unlock()
	used := drain(history)
	if automatic {
		made = s.newSnapshot(ses, "automatic", nil)
	}
	if made != nil {
		if err := disk.Move(s.path(made.id)); err != nil {
			s.cfg.Log.Error("a snapshot was lost", "sandbox", ses.box.name, "error", err)
			made.status = "failed"
			_ = disk.Remove()
		} else {
			made.disk, made.size = disk, disk.Bytes()
		}
	} else if err := disk.Remove(); err != nil {
		s.cfg.Log.Error("a disk was not removed", "sandbox", ses.box.name, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordEnd(ses, used)
	if made != nil && made.status == "created" {
		s.keepSnapshot(ses.box, made)
	}
	close(ses.ended)
}

// recordEnd records how a session ended. The caller holds s.mu.
func (s *Server) recordEnd(ses *session, cpuMs int64) {
	now := nowMs()
	b := ses.box
	ses.status, ses.stopped, ses.updated = statusStopped, now, now
	ses.cpuMs = cpuMs
	ses.drives.Release()
	in, out := ses.net.Bytes()
	ses.transfer = &transferJSON{Ingress: in, Egress: out}
	b.egress, b.ingress, b.cpuMs = b.egress+out, b.ingress+in, b.cpuMs+cpuMs
	b.durationMs += now - ses.started
	b.updated, b.statusAt = now, now
}

// running returns the session that r names, or why its commands and files are
// unavailable. It waits for a session that is still pending.
func (s *Server) running(r *http.Request) (*session, error) {
	s.mu.Lock()
	ses := s.sessions[r.PathValue("sid")]
	s.mu.Unlock()
	if ses == nil || !s.sees(r, ses.box.project) {
		return nil, reply.NotFound("Sandbox session '%s' not found.", r.PathValue("sid"))
	}
	select {
	case <-ses.ready:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return ses, ses.unavailable()
}

// unavailable returns why commands and files are unavailable; nil if they
// are available.
func (ses *session) unavailable() error {
	switch ses.status {
	case statusRunning:
		return nil
	case statusStopping:
		return errSandboxStopping
	case statusSnapshotting:
		return errSnapshotting
	}
	return errSandboxStopped
}

// sorted lists the values of m in the order in which they were made.
func sorted[K comparable, V any](m map[K]V, order func(V) int) []V {
	var out []V
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b V) int { return order(a) - order(b) })
	return out
}
