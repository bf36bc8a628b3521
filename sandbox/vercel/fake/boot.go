package fake

import (
	"time"

	"egressd/sandbox/vercel/fake/internal/firewall"
	"egressd/sandbox/vercel/fake/machine"
)

// startSession boots ses, in the background if the double delays boots. It
// continues when the client disconnects: a create whose client has gone still
// creates.
func (s *Server) startSession(ses *session, from *snapshot, src *sourceBody) error {
	if !s.enter() {
		return errSandboxStopped
	}
	done := make(chan struct{})
	go func() {
		defer s.wg.Done()
		defer close(done)
		s.boot(ses, from, src)
	}()
	if s.cfg.Delays.Boot > 0 {
		return nil
	}
	<-done
	return ses.bootErr
}

// boot brings ses from pending to running or failed.
func (s *Server) boot(ses *session, from *snapshot, src *sourceBody) {
	s.pause(s.cfg.Delays.Boot)
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
		ses.drives.Release()
		ses.closeRoutes()
		close(ses.ended)
		return
	}
	ses.status, ses.started = statusRunning, now
	ses.timer = time.AfterFunc(time.Duration(ses.timeout)*time.Millisecond, func() { s.stopInBackground(ses) })
	s.wg.Add(1) // also when Close has begun: it waits for this goroutine, which is counted
	go s.watch(ses)
}

// enterLocked is enter for callers that hold s.mu.
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
		ses.disk, err = machine.NewDisk(s.path(ses.id), ses.user)
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
	ses.net = firewall.New(s.firewallConfig(), ses.disk.SharedDir())
	if err := ses.net.Set(ses.policy); err != nil {
		return err
	}
	m, err := machine.Start(s.ctx, machine.Config{Disk: ses.disk, Hide: s.cfg.Hide, Mounts: ses.drives.Mounts, DoorServer: ses.net.DoorServer, Log: s.cfg.Log})
	if err != nil {
		return err
	}
	ses.m = m
	if err := s.unpackSource(ses, src); err != nil {
		m.Stop()
		return err
	}
	return nil
}

// pause waits for d, or until the Server is closed.
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
