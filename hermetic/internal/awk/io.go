package awk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"egressd/hermetic/command"
)

// streams are all that a program reads and writes.
type streams struct {
	in      *interp
	stdout  *writer
	stderr  *writer
	outputs map[string]*writer
	order   []string
	inputs  map[string]*reader
	locked  *lockedWriter // the standard output, which commands write to as well
}

// lockedWriter lets commands that run at the same time write in turn.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// writer is one output.
type writer struct {
	b     *bufio.Writer
	close func() (int, error) // reports the status of a command
	now   bool                // every write is flushed
}

func (w *writer) write(s string) error {
	if _, err := w.b.WriteString(s); err != nil {
		return err
	}
	if w.now {
		return w.b.Flush()
	}
	return nil
}

func newStreams(in *interp) *streams {
	s := &streams{in: in, outputs: map[string]*writer{}, inputs: map[string]*reader{}}
	s.locked = &lockedWriter{w: in.c.Stdout}
	s.stdout = &writer{b: bufio.NewWriterSize(s.locked, 32<<10)}
	s.stderr = &writer{b: bufio.NewWriter(in.c.Stderr), now: true}
	return s
}

func (s *streams) flush() error {
	err := s.stdout.b.Flush()
	for _, name := range s.order {
		if w := s.outputs[name]; w != nil {
			err = errors.Join(err, ignorePipe(w.b.Flush()))
		}
	}
	return err
}

// ignorePipe forgets that a command has ended before it read all.
func ignorePipe(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// output is where "> name", ">> name" or "| name" writes.
func (s *streams) output(how, name string) (*writer, error) {
	switch {
	case how != "|" && (name == "/dev/stdout" || name == "-"):
		return s.stdout, nil
	case how != "|" && name == "/dev/stderr":
		return s.stderr, s.stdout.b.Flush()
	}
	if w := s.outputs[name]; w != nil {
		return w, nil
	}
	if name == "" {
		return nil, fmt.Errorf("expression for `%s' redirection has null string value", how)
	}
	if int64(len(s.outputs)+len(s.inputs)) >= s.in.c.Budget.Limits.Files {
		return nil, errors.New("too many files and pipes are open at once")
	}
	var w *writer
	var err error
	if how == "|" {
		w, err = s.pipeTo(name)
	} else {
		w, err = s.create(how, name)
	}
	if err != nil {
		return nil, err
	}
	s.outputs[name] = w
	s.order = append(s.order, name)
	return w, nil
}

func (s *streams) create(how, name string) (*writer, error) {
	c := s.in.c
	flag := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC
	if how == ">>" {
		flag = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_APPEND
	}
	f, err := c.FS.OpenFile(c.Path(name), flag, 0o666&^c.Umask)
	if err != nil {
		return nil, fmt.Errorf("cannot redirect to `%s': %s", name, command.Reason(err))
	}
	w := &writer{b: bufio.NewWriterSize(f, 16<<10)}
	w.close = func() (int, error) { return 0, errors.Join(w.b.Flush(), f.Close()) }
	return w, nil
}

// shell runs a command line of the session.
func (s *streams) shell(ctx context.Context, line string, stdin io.Reader, stdout io.Writer) int {
	if stdout == nil {
		stdout = s.locked
	}
	return s.in.c.Exec(ctx, s.in.c.With([]string{"sh", "-c", line}, stdin, stdout, nil))
}

// pipeTo starts a command that reads what is printed.
func (s *streams) pipeTo(line string) (*writer, error) {
	if err := s.flush(); err != nil {
		return nil, err
	}
	r, p := io.Pipe()
	done := make(chan int, 1)
	go func() {
		status := s.shell(s.in.ctx, line, r, nil)
		_ = r.Close()
		done <- status
	}()
	w := &writer{b: bufio.NewWriterSize(p, 16<<10)}
	w.close = func() (int, error) {
		err := ignorePipe(w.b.Flush())
		_ = p.Close()
		return <-done, err
	}
	return w, nil
}

// input is what "getline < name" or "name | getline" reads.
func (s *streams) input(pipe bool, name string) (*reader, error) {
	if r := s.inputs[name]; r != nil {
		return r, nil
	}
	if int64(len(s.outputs)+len(s.inputs)) >= s.in.c.Budget.Limits.Files {
		return nil, errors.New("too many files and pipes are open at once")
	}
	var r *reader
	switch {
	case pipe:
		if err := s.flush(); err != nil {
			return nil, err
		}
		r = s.pipeFrom(name)
	case name == "-" || name == "/dev/stdin":
		r = s.in.rec.stdin()
	default:
		f, err := s.in.c.FS.Open(s.in.c.Path(name))
		if err != nil {
			return nil, &openError{err}
		}
		r = newReader(s.in, f)
		r.close = func() int {
			_ = f.Close()
			return 0
		}
	}
	s.inputs[name] = r
	return r, nil
}

// openError is a file that cannot be read, which getline reports as -1.
type openError struct{ error }

func (s *streams) pipeFrom(line string) *reader {
	p, w := io.Pipe()
	done := make(chan int, 1)
	ctx, cancel := context.WithCancel(s.in.ctx)
	go func() {
		status := s.shell(ctx, line, nil, w)
		_ = w.Close()
		done <- status
	}()
	r := newReader(s.in, p)
	r.close = func() int {
		_ = p.Close()
		cancel()
		return <-done
	}
	return r
}

// closeNamed is close(name): -1 when nothing of that name is open.
func (s *streams) closeNamed(name string) (int, error) {
	status := -1
	var err error
	if w := s.outputs[name]; w != nil {
		delete(s.outputs, name)
		status, err = w.close()
	}
	if r := s.inputs[name]; r != nil {
		delete(s.inputs, name)
		status = 0
		if r.close != nil {
			status = r.close()
		}
	}
	return status, err
}

// closeAll ends everything, in the order in which it was opened.
func (s *streams) closeAll() error {
	var err error
	for _, name := range s.order {
		if w := s.outputs[name]; w != nil {
			delete(s.outputs, name)
			_, bad := w.close()
			err = errors.Join(err, bad)
		}
	}
	for name, r := range s.inputs {
		delete(s.inputs, name)
		if r.close != nil {
			r.close()
		}
	}
	s.in.rec.close()
	return errors.Join(err, s.stdout.b.Flush())
}
