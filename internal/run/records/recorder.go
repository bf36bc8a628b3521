package records

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"unicode/utf8"
)

// Recorder writes the record and the stream of one process. It is safe for
// concurrent use. Finish or Detach closes it.
type Recorder struct {
	store *Store
	alive *os.File

	mu      sync.Mutex
	process Process
	file    *os.File
	seq     int
	size    int64
	full    bool
	out     part
	errs    part
	err     error // the first
	over    bool
}

// part is one of the two outputs.
type part struct {
	offset int64  // bytes written so far
	tail   []byte // the beginning of a character that is not complete
}

// Bounds of a stream. Output beyond them is not recorded, and the stream says so.
const (
	maxStream = 64 << 20
	maxData   = 32 << 10 // bytes of output in one chunk
)

// Process reports the record as it was last written.
func (r *Recorder) Process() Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.process
}

// Remote notes how a hosted tier knows the process, so that another launch can find
// it.
func (r *Recorder) Remote(c RemoteCommand) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, p := r.store, &r.process
	return s.locked(sandboxDir(p.Sandbox), func() error {
		now, err := s.process(p.Sandbox, p.ID)
		if err != nil {
			return err
		}
		now.Metadata.Remote = c // somebody may have asked for its end meanwhile
		*p = now
		return s.write(processFile(p.Sandbox, p.ID, processRecord), now)
	})
}

// Offset reports how many bytes of an output were recorded, where a replay
// continues. kind is ChunkStdout or ChunkStderr.
func (r *Recorder) Offset(kind string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.part(kind).offset
}

func (r *Recorder) part(kind string) *part {
	if kind == ChunkStderr {
		return &r.errs
	}
	return &r.out
}

// Write appends output; kind is ChunkStdout or ChunkStderr. Bytes that are not
// UTF-8 become U+FFFD, and NULs are dropped. A full disk does not disturb the
// program: Finish reports the error.
func (r *Recorder) Write(kind string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	p := r.part(kind)
	data = append(p.tail, data...)
	p.tail = nil
	for len(data) > 0 {
		n := min(len(data), maxData)
		if cut := whole(data[:n]); cut > 0 || n < len(data) {
			n = max(cut, 1)
		} else {
			p.tail = append([]byte(nil), data...)
			return
		}
		p.offset += int64(n)
		r.data(kind, data[:n], p.offset)
		data = data[n:]
	}
}

// whole reports the length of b without an incomplete last character.
func whole(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if c := b[len(b)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-back:]) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}

func (r *Recorder) data(kind string, b []byte, offset int64) {
	if r.size+int64(len(b)) > maxStream {
		if !r.full {
			r.full = true
			r.chunk(ChunkStatus, truncatedData{Status: Running, Truncated: true}, 0)
		}
		return
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(b), "\ufffd"), "\x00", "")
	if text != "" {
		r.chunk(kind, text, offset)
	}
}

// chunk writes one line.
func (r *Recorder) chunk(kind string, data any, offset int64) {
	r.seq++
	line, err := json.Marshal(clean(data))
	if err == nil {
		line, err = json.Marshal(Chunk{
			Version: version, At: r.store.now().UTC(), Seq: r.seq, Type: kind,
			Sandbox: r.process.Sandbox, Process: r.process.ID, Data: line, Offset: offset,
		})
	}
	if err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	r.size += int64(len(line)) + 1
	if r.err == nil {
		r.err = err
	}
}

// Detach ends the recording of a remote process that goes on: another launch may
// attach.
func (r *Recorder) Detach() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil
	}
	r.over = true
	return errors.Join(r.err, r.file.Close(), r.alive.Close())
}

// Finish ends the record. Status "" means Exited or Failed, by code; code nil means
// that the exit code is not known; message says why the process could not run. The
// error is the first of the whole recording. Only the first call has an effect.
func (r *Recorder) Finish(status Status, code *int, message string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil
	}
	r.over = true
	for kind, p := range map[string]*part{ChunkStdout: &r.out, ChunkStderr: &r.errs} {
		if len(p.tail) > 0 {
			p.offset += int64(len(p.tail))
			r.data(kind, p.tail, p.offset)
		}
	}
	if status == "" {
		status = Failed
		if code != nil && *code == 0 {
			status = Exited
		}
	}
	if message != "" {
		r.chunk(ChunkError, errorData{message}, 0)
	}
	err := r.close(status, code)
	r.chunk(ChunkExit, exitData{ExitCode: code, Status: r.process.Status}, 0)
	return errors.Join(r.err, err, r.file.Close(), r.alive.Close())
}

// close writes the end into the record. A final state that another launch wrote
// there stays.
func (r *Recorder) close(status Status, code *int) error {
	s, p := r.store, &r.process
	return s.locked(sandboxDir(p.Sandbox), func() error {
		now, err := s.process(p.Sandbox, p.ID)
		if err != nil {
			return err
		}
		if !now.Over() {
			now.Status = status
			if now.Metadata.Stopping {
				now.Status = Killed
			}
			ended := s.now().UTC()
			now.Ended = &ended
		}
		now.ExitCode = code
		*p = now
		return s.write(processFile(p.Sandbox, p.ID, processRecord), now)
	})
}
