package records

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// maxProcesses bounds the processes that a sandbox keeps; the oldest that are over
// go first.
const maxProcesses = 500

func processDir(sandbox string) string { return path.Join(sandboxDir(sandbox), "processes") }

func processFile(sandbox, id, suffix string) string {
	return path.Join(processDir(sandbox), id+suffix)
}

// Files of one process.
const (
	processRecord = ".json"
	processStream = ".ndjson"
	processAlive  = ".alive" // locked while there is a Recorder
)

// newID makes an ID. IDs sort by time.
func (s *Store) newID() string {
	return "p" + strconv.FormatInt(s.now().UnixMilli(), 36) + strings.ToLower(rand.Text()[:8])
}

// Start records a process that is about to run. The caller sets Sandbox, Command,
// Args, Dir, Mode, Kind, Provider, Metadata and the names in Env, and calls Finish
// at the end. If this launch dies before Finish, the process is Lost.
func (s *Store) Start(p Process) (*Recorder, error) {
	_, err := s.Sandbox(p.Sandbox)
	if err != nil {
		return nil, err
	}
	if err := s.root.MkdirAll(processDir(p.Sandbox), 0o700); err != nil {
		return nil, err
	}
	s.prune(p.Sandbox)
	p.Version, p.ID, p.Status, p.Started = version, s.newID(), Running, s.now().UTC()
	p.StreamID, p.ClientID = p.ID, "sandbox-process:"+p.ID
	p.Ended, p.ExitCode = nil, nil
	if p.Args == nil {
		p.Args = []string{}
	}
	for name := range p.Env {
		p.Env[name] = Redacted
	}
	if p.Metadata.Seal, err = s.seal(p.binding()); err != nil {
		return nil, err
	}
	alive, err := s.lock(processFile(p.Sandbox, p.ID, processAlive), false)
	if err != nil {
		return nil, err
	}
	r, err := s.record(p, alive)
	if err != nil {
		alive.Close()
	}
	return r, err
}

// record writes the record and the stream's first chunk.
func (s *Store) record(p Process, alive *os.File) (*Recorder, error) {
	if err := s.write(processFile(p.Sandbox, p.ID, processRecord), p); err != nil {
		return nil, err
	}
	f, err := s.root.OpenFile(processFile(p.Sandbox, p.ID, processStream), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	r := &Recorder{store: s, process: p, file: f, alive: alive}
	first := startData{Args: p.Args, Command: p.Command, Status: Running}
	if p.Dir != "" {
		first.Dir = &p.Dir
	}
	r.chunk(ChunkStatus, first, 0)
	return r, r.err
}

// Attach continues the recording of a remote process whose Recorder is gone. It
// fails if the process is over or has a Recorder.
func (s *Store) Attach(sandbox, id string) (*Recorder, error) {
	alive, err := s.lock(processFile(sandbox, id, processAlive), false)
	if errors.Is(err, errBusy) {
		return nil, fmt.Errorf("process %s is recorded by another launch", id)
	}
	if err != nil {
		return nil, err
	}
	r, err := s.attach(sandbox, id, alive)
	if err != nil {
		alive.Close()
	}
	return r, err
}

func (s *Store) attach(sandbox, id string, alive *os.File) (*Recorder, error) {
	p, err := s.process(sandbox, id)
	if err != nil {
		return nil, err
	}
	if p.Over() {
		return nil, fmt.Errorf("process %s is over: %s", id, p.Status)
	}
	r := &Recorder{store: s, process: p, alive: alive}
	at, err := s.Chunks(sandbox, id, 0, func(c Chunk) error {
		r.seq = c.Seq
		switch c.Type {
		case ChunkStdout:
			r.out.offset = c.Offset
		case ChunkStderr:
			r.errs.offset = c.Offset
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	name := processFile(sandbox, id, processStream)
	if r.file, err = s.root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	r.size = at
	return r, r.file.Truncate(at) // the last recorder may have left half a line
}

// Process reports one process. The error is ErrNotFound if there is none. A running
// process without a Recorder becomes Lost, unless it is remote: its tier can be
// asked.
func (s *Store) Process(sandbox, id string) (Process, error) {
	p, err := s.process(sandbox, id)
	if err != nil || p.Over() || p.Metadata.Remote != (RemoteCommand{}) {
		return p, err
	}
	alive, err := s.lock(processFile(sandbox, id, processAlive), false)
	if errors.Is(err, errBusy) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	alive.Close()
	return s.MarkLost(sandbox, id, LauncherDied)
}

func (s *Store) process(sandbox, id string) (Process, error) {
	for _, name := range []string{sandbox, id} {
		if why := ValidName(name); why != "" {
			return Process{}, fmt.Errorf("%q: %s", name, why)
		}
	}
	p, err := read(s, processFile(sandbox, id, processRecord), func(p *Process) int { return p.Version })
	if err != nil {
		return p, fmt.Errorf("process %s: %w", id, err)
	}
	return p, nil
}

// Processes lists the processes of a sandbox, the oldest first. The error names
// records that could not be read; the list has the others.
func (s *Store) Processes(sandbox string) ([]Process, error) {
	ids, err := s.processIDs(sandbox)
	if err != nil {
		return nil, err
	}
	var all []Process
	var errs []error
	for _, id := range ids {
		p, err := s.Process(sandbox, id)
		switch {
		case errors.Is(err, ErrNotFound):
		case err != nil:
			errs = append(errs, err)
		default:
			all = append(all, p)
		}
	}
	return all, errors.Join(errs...)
}

func (s *Store) processIDs(sandbox string) ([]string, error) {
	names, err := s.names(processDir(sandbox))
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, processRecord); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// MarkStopping notes that somebody asked for the end of a process: however it then
// ends, it was Killed. It reports the record, with the launcher to signal.
func (s *Store) MarkStopping(sandbox, id string) (Process, error) {
	var p Process
	if _, err := s.Process(sandbox, id); err != nil {
		return p, err
	}
	err := s.locked(sandboxDir(sandbox), func() (err error) {
		if p, err = s.process(sandbox, id); err != nil || p.Over() {
			return err
		}
		p.Metadata.Stopping = true
		return s.write(processFile(sandbox, id, processRecord), p)
	})
	return p, err
}

// Reasons why a process is lost.
const (
	LauncherDied   = "launcher_died"
	SandboxStopped = "sandbox_stopped"
)

// MarkLost makes a running process Lost, for a reason. A process that is over
// stays as it is.
func (s *Store) MarkLost(sandbox, id, reason string) (Process, error) {
	return s.end(sandbox, id, func(p *Process) exitData {
		p.Status, p.Metadata.Reason = Lost, reason
		return exitData{Status: Lost, Message: reason}
	})
}

// MarkAllLost makes every running process of a sandbox Lost.
func (s *Store) MarkAllLost(sandbox, reason string) error {
	ids, err := s.processIDs(sandbox)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if _, err := s.MarkLost(sandbox, id, reason); err != nil && !errors.Is(err, ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// end moves a running process to a final state, and writes the last chunk of its
// stream unless a Recorder will.
func (s *Store) end(sandbox, id string, change func(*Process) exitData) (p Process, err error) {
	if p, err = s.process(sandbox, id); err != nil {
		return p, err
	}
	err = s.locked(sandboxDir(sandbox), func() error {
		if p, err = s.process(sandbox, id); err != nil || p.Over() {
			return err
		}
		last := change(&p)
		now := s.now().UTC()
		p.Ended = &now
		if err := s.write(processFile(sandbox, id, processRecord), p); err != nil {
			return err
		}
		alive, err := s.lock(processFile(sandbox, id, processAlive), false)
		if err != nil {
			return nil // its recorder writes the end
		}
		defer alive.Close()
		return s.lastChunk(p, last)
	})
	return p, err
}

// lastChunk ends the stream of a process without a Recorder.
func (s *Store) lastChunk(p Process, last exitData) error {
	seq := 0
	at, err := s.Chunks(p.Sandbox, p.ID, 0, func(c Chunk) error { seq = c.Seq; return nil })
	if err != nil {
		return err
	}
	f, err := s.root.OpenFile(processFile(p.Sandbox, p.ID, processStream), os.O_WRONLY|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r := Recorder{store: s, process: p, file: f, seq: seq, size: at}
	r.err = f.Truncate(at)
	r.chunk(ChunkExit, last, 0)
	return errors.Join(r.err, f.Close())
}

// prune makes room for one more process.
func (s *Store) prune(sandbox string) {
	ids, err := s.processIDs(sandbox)
	if err != nil {
		return
	}
	excess := len(ids) - maxProcesses + 1
	for _, id := range ids {
		if excess <= 0 {
			return
		}
		if p, err := s.process(sandbox, id); err != nil || !p.Over() {
			continue
		}
		for _, suffix := range []string{processStream, processAlive, processRecord} {
			_ = s.root.Remove(processFile(sandbox, id, suffix))
		}
		excess--
	}
}
