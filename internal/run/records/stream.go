package records

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// maxLine bounds one line of a stream.
const maxLine = 1 << 20

// Chunks calls yield for each chunk of a stream from byte offset from, and reports
// the offset behind the last whole line, where the next call continues. A last
// line without a newline counts once the process is over. Chunks ends with the
// first error of yield.
func (s *Store) Chunks(sandbox, id string, from int64, yield func(Chunk) error) (next int64, err error) {
	p, err := s.process(sandbox, id)
	if errors.Is(err, ErrNotFound) {
		return from, fmt.Errorf("sandbox_process_not_found: %w", err)
	}
	if err != nil {
		return from, err
	}
	if p.StreamID == "" {
		return from, errors.New("sandbox_process_stream_missing")
	}
	f, err := s.root.Open(processFile(sandbox, id, processStream))
	if errors.Is(err, fs.ErrNotExist) {
		return from, fmt.Errorf("sandbox_process_stream_missing: %w", err)
	}
	if err != nil {
		return from, err
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return from, err
	}
	return scan(f, from, p.Over(), yield)
}

// scan reads the lines of r, which begins at offset at.
func scan(r io.Reader, at int64, over bool, yield func(Chunk) error) (int64, error) {
	buf := make([]byte, 0, 64<<10)
	for {
		if len(buf) == cap(buf) {
			if cap(buf) >= maxLine {
				return at, errors.New("invalid_sandbox_process_stream_chunk: a line without an end")
			}
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		for {
			line, _, found := bytes.Cut(buf, []byte{'\n'})
			if !found {
				break
			}
			if err := show(line, yield); err != nil {
				return at, err
			}
			at += int64(len(line)) + 1
			buf = buf[:copy(buf, buf[len(line)+1:])]
		}
		if errors.Is(err, io.EOF) {
			if over && len(bytes.TrimSpace(buf)) > 0 && json.Valid(buf) {
				at += int64(len(buf))
				return at, show(buf, yield)
			}
			return at, nil
		}
		if err != nil {
			return at, err
		}
	}
}

// show decodes one line and skips a blank one.
func show(line []byte, yield func(Chunk) error) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	if line[0] != '{' {
		return errors.New("invalid_sandbox_process_stream_chunk")
	}
	var c Chunk
	if err := json.Unmarshal(line, &c); err != nil {
		return fmt.Errorf("invalid_sandbox_process_stream_chunk: %w", err)
	}
	if c.Version != version {
		return fmt.Errorf("invalid_sandbox_process_stream_version:%d", c.Version)
	}
	return yield(c)
}

// followInterval is how often a growing stream is read.
const followInterval = 100 * time.Millisecond

// Follow is Chunks for a process that runs: it waits for new chunks until the last
// one, until the stream has no writer, or until ctx ends.
func (s *Store) Follow(ctx context.Context, sandbox, id string, from int64, yield func(Chunk) error) error {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	ended := false
	for {
		// Before the stream is read, so that all that was written before the end is read.
		p, err := s.Process(sandbox, id)
		if err != nil {
			return err
		}
		from, err = s.Chunks(sandbox, id, from, func(c Chunk) error {
			ended = ended || c.Type == ChunkExit
			return yield(c)
		})
		if err != nil || ended || p.Over() && !s.HasRecorder(sandbox, id) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// HasRecorder reports whether the process has a Recorder now, in this launch or in
// another.
func (s *Store) HasRecorder(sandbox, id string) bool {
	f, err := s.lock(processFile(sandbox, id, processAlive), false)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, errBusy)
}

// Wait waits until a process is over, for 5 minutes if timeout is zero or negative.
// At the timeout the error begins with sandbox_process_wait_timeout.
func (s *Store) Wait(ctx context.Context, sandbox, id string, timeout time.Duration) (Process, error) {
	if timeout <= 0 {
		timeout = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("sandbox_process_wait_timeout:%s", id))
	defer cancel()
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for {
		p, err := s.Process(sandbox, id)
		if err != nil || p.Over() {
			return p, err
		}
		select {
		case <-ctx.Done():
			return p, context.Cause(ctx)
		case <-tick.C:
		}
	}
}
