package kept

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// Kinds of chunks. The data of the outputs is text, of the others an object.
const (
	ChunkStatus = "status"
	ChunkStdout = "stdout"
	ChunkStderr = "stderr"
	ChunkError  = "error"
	ChunkExit   = "exit" // the last one
)

// Chunk is one line of a stream.
type Chunk struct {
	Version int       `json:"version"` // 1
	At      time.Time `json:"at"`
	Seq     int       `json:"seq"` // from 1, without gaps
	Type    string    `json:"type"`
	Sandbox string    `json:"sandboxId"`
	Process string    `json:"processId"`
	Data    any       `json:"data,omitempty"`
	Offset  int64     `json:"offset,omitempty"` // of an output: its bytes so far, this chunk's included
}

// Text is the data of an output.
func (c *Chunk) Text() string { s, _ := c.Data.(string); return s }

// maxLine bounds one line of a stream.
const maxLine = 1 << 20

// Chunks shows visit the chunks of a stream from the byte offset from on, and
// reports the offset behind the last whole line: what comes after it is for the
// next call. A last line without its newline counts once the process is over.
func (s *Store) Chunks(sandbox, id string, from int64, visit func(Chunk) error) (next int64, err error) {
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
	return scan(f, from, p.Over(), visit)
}

// scan reads lines.
func scan(r io.Reader, at int64, over bool, visit func(Chunk) error) (int64, error) {
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
			if err := show(line, visit); err != nil {
				return at, err
			}
			at += int64(len(line)) + 1
			buf = buf[:copy(buf, buf[len(line)+1:])]
		}
		if errors.Is(err, io.EOF) {
			if over && len(bytes.TrimSpace(buf)) > 0 && json.Valid(buf) {
				at += int64(len(buf))
				return at, show(buf, visit)
			}
			return at, nil
		}
		if err != nil {
			return at, err
		}
	}
}

// show decodes one line; a blank one is none.
func show(line []byte, visit func(Chunk) error) error {
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
	if c.Version != 1 {
		return fmt.Errorf("invalid_sandbox_process_stream_version:%d", c.Version)
	}
	return visit(c)
}

// followInterval is how often a stream that may grow is looked at.
const followInterval = 100 * time.Millisecond

// Follow shows visit every chunk from the byte offset from on as it is written,
// until the last one, or until nobody writes any more.
func (s *Store) Follow(ctx context.Context, sandbox, id string, from int64, visit func(Chunk) error) error {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	ended := false
	for {
		// Asked before the stream is read: what was written before the end is read.
		p, err := s.Process(sandbox, id)
		if err != nil {
			return err
		}
		from, err = s.Chunks(sandbox, id, from, func(c Chunk) error {
			ended = ended || c.Type == ChunkExit
			return visit(c)
		})
		if err != nil || ended || p.Over() && !s.Recorded(sandbox, id) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Recorded reports whether somebody holds the process's recording: its launcher,
// or one that attached.
func (s *Store) Recorded(sandbox, id string) bool {
	f, err := s.lock(processFile(sandbox, id, processAlive), false)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, errBusy)
}

// Result is how a process ended, as its stream tells it.
type Result struct {
	Success  bool   `json:"success"`
	ExitCode int    `json:"exitCode"`
	Output   string `json:"output"`
	Error    string `json:"error"`
	Command  string `json:"command"`
}

// maxResult bounds each text of a result; the beginning is kept.
const maxResult = 16 << 20

// Result puts the result of a process together from its stream.
func (s *Store) Result(sandbox, id string) (Result, error) {
	p, err := s.Process(sandbox, id)
	if err != nil {
		return Result{}, err
	}
	var out, errs strings.Builder
	code := p.ExitCode
	_, err = s.Chunks(sandbox, id, 0, func(c Chunk) error {
		data, _ := c.Data.(map[string]any)
		switch c.Type {
		case ChunkStdout:
			keep(&out, c.Text())
		case ChunkStderr:
			keep(&errs, c.Text())
		case ChunkError:
			message, _ := data["message"].(string)
			keep(&errs, message)
		case ChunkExit:
			if n, ok := data["exitCode"].(float64); ok {
				code = new(int)
				*code = int(n)
			}
		}
		return nil
	})
	r := Result{ExitCode: 1, Output: out.String(), Error: errs.String(), Command: strings.Join(append([]string{p.Command}, p.Args...), " ")}
	if code != nil {
		r.ExitCode = *code
	}
	r.Success = r.ExitCode == 0
	return r, err
}

func keep(b *strings.Builder, s string) {
	b.WriteString(s[:min(len(s), max(maxResult-b.Len(), 0))])
}

// Wait waits until a process is over; timeout zero is 5 minutes.
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
