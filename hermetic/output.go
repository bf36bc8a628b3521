package hermetic

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
)

// brokenWrites is how many writes into a closed pipe end a script. Each ends the
// command that tries it, as SIGPIPE would; more of them are a loop that does not
// check.
const brokenWrites = 16

// closedPipes counts writes that found no reader.
type closedPipes struct {
	stop  context.CancelFunc
	count atomic.Int32
}

// ended reports whether the script was ended because nobody reads its output.
func (p *closedPipes) ended() bool { return p.count.Load() >= brokenWrites }

// watch is w, counted; a nil w discards. If w has Stat, so has the result.
func (p *closedPipes) watch(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	counted := countedWriter{w, p}
	if f, ok := w.(statter); ok {
		return countedFile{counted, f}
	}
	return counted
}

type statter interface{ Stat() (fs.FileInfo, error) }

type countedWriter struct {
	w      io.Writer
	closed *closedPipes
}

func (c countedWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if errors.Is(err, syscall.EPIPE) && c.closed.count.Add(1) == brokenWrites {
		c.closed.stop()
	}
	return n, err
}

type countedFile struct {
	countedWriter
	statter
}
