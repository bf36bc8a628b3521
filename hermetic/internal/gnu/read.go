package gnu

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"syscall"

	"egressd/hermetic/command"
)

// Open opens an operand to read; "-" is the standard input, which Close leaves
// open. Reads end when the call's context does.
func (w *Work) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(&bounded{w.Ctx, w.Stdin}), nil
	}
	return w.OpenFile(name)
}

// OpenFile is Open where "-" is a name like others.
func (w *Work) OpenFile(name string) (io.ReadCloser, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	f, err := w.FS.Open(w.Path(name))
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{&bounded{w.Ctx, f}, f}, nil
}

// bounded ends reading when the context ends.
type bounded struct {
	ctx context.Context
	r   io.Reader
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	if n == 0 && errors.Is(err, io.ErrClosedPipe) {
		err = io.EOF
	}
	return n, err
}

// ErrMemory is what holding more than a command may is.
var ErrMemory = errors.New("memory exhausted")

// Most is how many bytes one command may hold.
func (w *Work) Most() int64 { return w.Budget.Limits.Memory / 4 }

// Lines reads records that end with Delim.
type Lines struct {
	r     *bufio.Reader
	delim byte
	most  int
	long  []byte
}

// Lines reads the records of r.
func (w *Work) Lines(r io.Reader, delim byte) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 32<<10), delim: delim, most: int(w.Most())}
}

// Next is the next record with its delimiter, which only the last may lack; it
// stays as it is until the next call. The error at the end is io.EOF.
func (l *Lines) Next() ([]byte, error) {
	line, err := l.r.ReadSlice(l.delim)
	if err == nil {
		return line, nil
	}
	l.long = append(l.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.r.ReadSlice(l.delim)
		if len(l.long)+len(line) > l.most {
			return nil, ErrMemory
		}
		l.long = append(l.long, line...)
	}
	if len(l.long) > 0 && (err == nil || errors.Is(err, io.EOF)) {
		return l.long, nil
	}
	return nil, err
}

// Text is Next without the delimiter.
func (l *Lines) Text() ([]byte, error) {
	line, err := l.Next()
	return bytes.TrimSuffix(line, []byte{l.delim}), err
}

// All reads the whole of r, up to Most.
func (w *Work) All(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, w.Most()+1))
	if err == nil && int64(len(b)) > w.Most() {
		err = ErrMemory
	}
	return b, err
}

// EachLine calls f with the records of each operand in turn; no operand is the
// standard input. What cannot be opened or read is a Fault "NAME: reason". It
// stops when f reports false.
func (w *Work) EachLine(operands []string, delim byte, f func(line []byte) bool) {
	w.EachFile(operands, func(_ string, r io.Reader) error {
		lines := w.Lines(r, delim)
		for {
			line, err := lines.Next()
			if err != nil {
				return err
			}
			if !f(line) {
				return errStop
			}
		}
	})
}

var errStop = errors.New("stop")

// Stop is what f of EachFile reports to leave the remaining operands.
func Stop() error { return errStop }

// EachFile calls f with each operand; see EachLine. io.EOF is no error.
func (w *Work) EachFile(operands []string, f func(name string, r io.Reader) error) {
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		r, err := w.Open(name)
		if err != nil {
			w.Fault("%s: %s", QuoteName(name), command.Reason(err))
			continue
		}
		err = f(name, r)
		_ = r.Close()
		switch {
		case errors.Is(err, errStop) || w.Ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, io.EOF):
			w.Fault("%s: %s", QuoteName(name), command.Reason(err))
		}
	}
}

// Create opens a file to write, as a tool's output file.
func (w *Work) Create(name string, appending bool) (io.WriteCloser, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	flag := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC
	if appending {
		flag = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_APPEND
	}
	return w.FS.OpenFile(w.Path(name), flag, 0o666&^w.Umask)
}
