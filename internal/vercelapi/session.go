package vercelapi

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"egressd/internal/vercelapi/machine"
	"egressd/sandbox/process"
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
	everStopped, gone bool
	resuming          chan struct{} // closed when a resume under way has ended; nil: none
}

// session is one boot of a sandbox's machine. Its fields are the Server's mu's,
// but those that are set before it is known to anybody.
type session struct {
	id      string
	box     *box
	order   int
	source  string // the snapshot it was booted from
	cwd     string
	home    string
	runtime string
	vcpus   int
	region  string
	env     map[string]string

	status    string
	timeout   int64
	policy    *netPolicy
	routes    []route
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
	net   *network
	timer *time.Timer

	ready   chan struct{} // closed when it is not pending any more
	bootErr error         // why it failed
	ended   chan struct{} // closed when it is over: stopped or failed

	commands map[string]*command
	history  []*command // in the order they were started
}

// route is a port of a session that can be reached from outside.
type route struct {
	port      int
	subdomain string
	addr      netip.AddrPort // of this machine's loopback
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
		return nil, &apiError{http.StatusTooManyRequests, "resource_limit_exceeded", "Too many sandboxes are running."}
	}
	s.forgetSessions()
	s.order++
	now := nowMs()
	ses := &session{
		id: sessionID(), box: b, order: s.order, cwd: machine.Home, home: machine.Home, runtime: b.runtime,
		vcpus: b.vcpus, region: b.region, env: b.env, status: statusPending, timeout: b.timeout, policy: b.policy,
		requested: now, updated: now, ready: make(chan struct{}), ended: make(chan struct{}), commands: map[string]*command{},
	}
	if b.legacy {
		ses.cwd, ses.home = machine.LegacyCwd, machine.LegacyHome
	} else {
		ses.runtime = shownRuntime
	}
	if from != nil {
		ses.source = from.id
		from.used = now
	}
	for _, p := range b.ports {
		ses.routes = append(ses.routes, route{port: p, subdomain: subdomain()})
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

// startSession boots ses; when the double delays boots, in the background.
func (s *Server) startSession(ctx context.Context, ses *session, from *snapshot, src *sourceBody) error {
	if !s.enter() {
		return errSandboxStopped
	}
	done := make(chan struct{})
	go func() {
		defer s.wg.Done()
		defer close(done)
		s.boot(ses, from, src)
	}()
	if s.cfg.BootDelay > 0 {
		return nil
	}
	<-done // also when the client has gone: a create that nobody waits for creates all the same
	_ = ctx
	return ses.bootErr
}

// boot brings ses from pending to running or failed.
func (s *Server) boot(ses *session, from *snapshot, src *sourceBody) {
	s.pause(s.cfg.BootDelay)
	err := s.bootMachine(ses, from, src)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := nowMs()
	ses.updated, ses.box.updated, ses.box.statusAt = now, now, now
	ses.bootErr = err
	defer close(ses.ready)
	if err != nil {
		s.cfg.Log.Error("a sandbox did not start", "sandbox", ses.box.name, "error", err)
		ses.status = statusFailed
		close(ses.ended)
		return
	}
	ses.status, ses.started = statusRunning, now
	ses.timer = time.AfterFunc(time.Duration(ses.timeout)*time.Millisecond, func() { s.stopInBackground(ses) })
	if s.enterLocked() {
		go s.watch(ses)
	}
}

// enterLocked is enter for who holds s.mu.
func (s *Server) enterLocked() bool {
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// watch ends a session whose machine has ended, by itself or with the Server.
func (s *Server) watch(ses *session) {
	defer s.wg.Done()
	<-ses.m.Ended()
	s.finish(ses, nil)
}

func (s *Server) bootMachine(ses *session, from *snapshot, src *sourceBody) (err error) {
	if from != nil {
		from.using.RLock()
		if from.disk == nil {
			err = errSnapshotGone
		} else {
			ses.disk, err = from.disk.Copy(s.path(ses.id))
		}
		from.using.RUnlock()
	} else {
		ses.disk, err = machine.NewDisk(s.path(ses.id))
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = ses.disk.Remove()
			ses.disk = nil
		}
	}()
	if err := s.cloneSource(ses, src); err != nil {
		return err
	}
	ses.net = s.newNetwork(ses)
	if err := ses.net.set(ses.policy); err != nil {
		return err
	}
	var ports []process.Publish
	for _, r := range ses.routes {
		ports = append(ports, process.Publish{Inside: uint16(r.port)}) // #nosec: validated
	}
	m, err := machine.Start(s.ctx, machine.Config{Disk: ses.disk, Ports: ports, Keeper: ses.net.keeper, Log: s.cfg.Log})
	if err != nil {
		return err
	}
	ses.m = m
	if err := s.unpackSource(ses, src); err != nil {
		m.Stop()
		return err
	}
	s.mu.Lock()
	for i, addr := range ses.net.published() {
		if i < len(ses.routes) {
			ses.routes[i].addr = addr
		}
	}
	s.mu.Unlock()
	return nil
}

// pause waits, but not longer than the Server lives.
func (s *Server) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// stopInBackground stops a session whose time is over.
func (s *Server) stopInBackground(ses *session) {
	if !s.enter() {
		return
	}
	defer s.wg.Done()
	s.stop(ses)
}

// stop brings a session to its end and waits for it. A session that is at its
// end, or on the way there, is waited for.
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
	s.pause(s.cfg.StopDelay)
	ses.m.Stop()
	s.finish(ses, nil)
	<-ses.ended
}

// leave puts a running session on its way to the end. s.mu is held.
func (s *Server) leave(ses *session, status string) {
	now := nowMs()
	ses.status, ses.stopAsked, ses.updated = status, now, now
	ses.box.statusAt, ses.box.updated = now, now
	if ses.timer != nil {
		ses.timer.Stop()
	}
}

// finish settles a session whose machine has ended: what it used is added up,
// its disk becomes a snapshot (made, or an automatic one of a persistent
// sandbox) or is removed. It does nothing the second time.
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
		return // somebody else is at it
	}
	automatic := made == nil && ses.box.persistent && !ses.box.gone && !s.closed
	s.mu.Unlock()
	running := ses.drainCommands()
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
	s.settle(ses, running)
	if made != nil && made.status == "created" {
		s.keepSnapshot(ses.box, made)
	}
	close(ses.ended)
}

// settle writes down how a session ended. s.mu is held.
func (s *Server) settle(ses *session, cpuMs int64) {
	now := nowMs()
	b := ses.box
	ses.status, ses.stopped, ses.updated = statusStopped, now, now
	ses.cpuMs = cpuMs
	in, out := ses.net.bytes()
	ses.transfer = &transferJSON{Ingress: in, Egress: out}
	b.egress, b.ingress, b.cpuMs = b.egress+out, b.ingress+in, b.cpuMs+cpuMs
	b.durationMs += now - ses.started
	b.everStopped = true
	b.updated, b.statusAt = now, now
}

// running reports ses when commands and files can be had, else why not. It
// waits for a session that is still pending.
func (s *Server) running(r *http.Request) (*session, error) {
	s.mu.Lock()
	ses := s.sessions[r.PathValue("sid")]
	s.mu.Unlock()
	if ses == nil || !s.sees(r, ses.box.project) {
		return nil, notFound("Sandbox session '%s' not found.", r.PathValue("sid"))
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

// unavailable says why commands and files cannot be had.
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
