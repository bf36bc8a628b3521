// Package tap copies a program's output on its way.
//
//	t, err := tap.New(os.Stdout, os.Stderr, record)
//	... run the program with t.Stdout and t.Stderr ...
//	err = t.Close()
package tap

import (
	"errors"
	"os"
	"sync"
)

// Tap stands between a program and the files for its output.
type Tap struct {
	Stdout, Stderr *os.File // for the program; one file if its outputs are one

	ends    []*os.File
	copying sync.WaitGroup
}

// New makes a tap in front of out and err; nil is nowhere. listen gets every piece
// of output, with errors true for the standard error; it may be called from two
// goroutines. If out and err are the same file, their order is kept, and errors is
// always false.
func New(out, err *os.File, listen func(errors bool, data []byte)) (*Tap, error) {
	t := &Tap{}
	var e error
	if t.Stdout, e = t.pipe(out, func(b []byte) { listen(false, b) }); e != nil {
		return nil, e
	}
	if same(out, err) {
		t.Stderr = t.Stdout
		return t, nil
	}
	if t.Stderr, e = t.pipe(err, func(b []byte) { listen(true, b) }); e != nil {
		t.Close()
		return nil, e
	}
	return t, nil
}

func same(a, b *os.File) bool {
	if a == nil || b == nil {
		return a == b && a != nil
	}
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// pipe makes a pipe, starts copying from it, and reports the end to write to.
func (t *Tap) pipe(to *os.File, listen func([]byte)) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t.ends = append(t.ends, w)
	t.copying.Go(func() { pass(r, to, listen) })
	return w, nil
}

// pass copies until the program's end of the pipe is closed. If to cannot be written
// any more it closes its own end, so that the program notices as without a tap.
func pass(from, to *os.File, listen func([]byte)) {
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			listen(buf[:n])
			if to != nil {
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// Close closes the pipes and waits for what is still in them. Call it when the
// program is over: Close would wait for a program that holds its output open.
func (t *Tap) Close() error {
	var errs []error
	for _, f := range t.ends {
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	t.copying.Wait()
	return errors.Join(errs...)
}
