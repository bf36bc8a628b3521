// Package tap lets somebody listen to a program's output on its way.
package tap

import (
	"errors"
	"os"
	"sync"
)

// Tap stands between a program and the files that its output is for.
type Tap struct {
	Stdout, Stderr *os.File // what the program is given; one file when its outputs are one

	ends    []*os.File
	copying sync.WaitGroup
}

// New makes a tap in front of out and err; nil ones stand for nowhere. listen
// is shown every piece of output, errors being true for the standard error,
// and may be called from two goroutines. Where out and err are the same open
// file, their order is kept: both come as output.
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

// pipe starts copying from a new pipe, whose other end it reports.
func (t *Tap) pipe(to *os.File, listen func([]byte)) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t.ends = append(t.ends, w)
	t.copying.Go(func() { pass(r, to, listen) })
	return w, nil
}

// pass copies until the program's end is closed. When nobody reads any more it
// closes its own, so that the program learns of it as without a tap.
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

// Close gives the ends of the pipes up and waits for what is still in them.
// Call it when the program is over: one that lives on and holds its output
// open would be waited for.
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
