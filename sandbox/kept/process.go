package kept

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

// maxProcesses is how many processes a sandbox remembers; the oldest that are
// over are forgotten first.
const maxProcesses = 500

func processDir(sandbox string) string { return path.Join(sandboxDir(sandbox), "processes") }

func processFile(sandbox, id, suffix string) string {
	return path.Join(processDir(sandbox), id+suffix)
}

// Files of one process.
const (
	processRecord = ".json"
	processStream = ".ndjson"
	processAlive  = ".alive" // locked for as long as somebody records
)

// newID is a name that sorts by time.
func (s *Store) newID() string {
	return "p" + strconv.FormatInt(s.now().UnixMilli(), 36) + strings.ToLower(rand.Text()[:8])
}

// Start records a process that is about to run: Sandbox, Command, Args, Dir,
// Mode, Kind, Provider, Metadata and the names in Env are the caller's. The
// caller calls Finish. What it holds says that somebody looks after the
// process: when it is gone without Finish, the process is lost.
func (s *Store) Start(p Process) (*Recorder, error) {
	if _, err := s.Sandbox(p.Sandbox); err != nil {
		return nil, err
	}
	if err := s.root.MkdirAll(processDir(p.Sandbox), 0o700); err != nil {
		return nil, err
	}
	s.prune(p.Sandbox)
	p.Version, p.ID, p.Status, p.Started = 1, s.newID(), Running, s.now().UTC()
	p.StreamID, p.ClientID = p.ID, "sandbox-process:"+p.ID
	p.Ended, p.ExitCode = nil, nil
	if p.Args == nil {
		p.Args = []string{}
	}
	for name := range p.Env {
		p.Env[name] = Redacted
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
	var dir any
	if p.Dir != "" {
		dir = p.Dir
	}
	r.chunk(ChunkStatus, map[string]any{"status": Running, "command": p.Command, "args": p.Args, "cwd": dir}, 0)
	return r, r.err
}

// Attach goes on with the recording of a process that runs elsewhere and whose
// recorder is gone. It fails with an error when the process is over, or
// somebody else records it.
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
	return r, r.file.Truncate(at) // half a line that the last recorder left
}

// Process reports one process; ErrNotFound when there is none. One that nobody
// looks after any more becomes lost, unless it runs elsewhere ("remote" in its
// metadata): its tier can ask.
func (s *Store) Process(sandbox, id string) (Process, error) {
	p, err := s.process(sandbox, id)
	if err != nil || p.Over() || p.Metadata["remote"] != nil {
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
	return s.Lose(sandbox, id, "launcher_died")
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

// Processes lists the processes of a sandbox, the oldest first. The error tells
// of records that could not be read.
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

// Stopping notes that somebody asked for the process's end: however it then
// ends, it was killed. Its launcher is then told, whose process id is in the
// metadata as "launcher".
func (s *Store) Stopping(sandbox, id string) (Process, error) {
	var p Process
	if _, err := s.Process(sandbox, id); err != nil {
		return p, err
	}
	err := s.locked(sandboxDir(sandbox), func() (err error) {
		if p, err = s.process(sandbox, id); err != nil || p.Over() {
			return err
		}
		if p.Metadata == nil {
			p.Metadata = map[string]any{}
		}
		p.Metadata["stopping"] = true
		return s.write(processFile(sandbox, id, processRecord), p)
	})
	return p, err
}

// Lose gives a running process up, for a reason such as "sandbox_stopped". One
// that is over stays as it is.
func (s *Store) Lose(sandbox, id, reason string) (Process, error) {
	return s.end(sandbox, id, func(p *Process) Chunk {
		p.Status = Lost
		if p.Metadata == nil {
			p.Metadata = map[string]any{}
		}
		p.Metadata["reason"] = reason
		return Chunk{Type: ChunkExit, Data: map[string]any{"exitCode": nil, "status": Lost, "message": reason}}
	})
}

// LoseAll gives up every running process of a sandbox.
func (s *Store) LoseAll(sandbox, reason string) error {
	ids, err := s.processIDs(sandbox)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		if _, err := s.Lose(sandbox, id, reason); err != nil && !errors.Is(err, ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// end moves a running process to a state that stays, and writes the stream's
// last chunk when nobody else records.
func (s *Store) end(sandbox, id string, change func(*Process) Chunk) (p Process, err error) {
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

// lastChunk ends the stream of a process that nobody records.
func (s *Store) lastChunk(p Process, last Chunk) error {
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
	r.chunk(last.Type, last.Data, 0)
	return errors.Join(r.err, f.Close())
}

// prune makes room for one process more.
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
