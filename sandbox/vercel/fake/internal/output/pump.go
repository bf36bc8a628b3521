package output

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
	"unicode/utf8"
)

// Pump reads one stream of a command into a log.
type Pump struct {
	File   *os.File
	Stream byte
	Log    *Log
	Whole  func() // called when all that the command itself wrote is in Log; it may be called again
}

const readBytes = 32 << 10

// maxPipeBytes is what a pipe can hold: fs/pipe-max-size, as Linux has it.
const maxPipeBytes = 1 << 20

// Run reads to the end of the stream. When the command has ended, a deadline
// that is over makes it look at what is in the pipe then: that, and no more, is
// the command's own. A character that a read cuts in two waits for the next.
func (p *Pump) Run() {
	defer p.Whole()
	buf := make([]byte, readBytes)
	held := 0
	for {
		n, err := p.File.Read(buf[held:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.rest(buf, held)
			return
		}
		n += held
		held = 0
		if err == nil {
			held = cutCharacter(buf[:n])
		}
		if n > held {
			p.Log.Add(p.Stream, buf[:n-held])
		}
		copy(buf, buf[n-held:n])
		if err != nil {
			return
		}
	}
}

// rest keeps what is in the pipe and throws away what comes later.
func (p *Pump) rest(buf []byte, held int) {
	_ = p.File.SetReadDeadline(time.Time{})
	raw, err := p.File.SyscallConn()
	if err != nil {
		return
	}
	last := bytes.Clone(buf[:held])
	for n := 1; n > 0 && len(last) < maxPipeBytes; {
		err := raw.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf) // #nosec: a descriptor; EAGAIN when it is empty
			return true
		})
		if err != nil {
			break
		}
		last = append(last, buf[:max(n, 0)]...)
	}
	for len(last) > 0 {
		n := len(last)
		if n > readBytes {
			n = readBytes - cutCharacter(last[:readBytes])
		}
		p.Log.Add(p.Stream, last[:n])
		last = last[n:]
	}
	p.Whole()
	_, _ = io.Copy(io.Discard, p.File)
}

// cutCharacter reports how many bytes at the end of b begin a UTF-8 character
// that is not whole.
func cutCharacter(b []byte) int {
	for n := 1; n <= min(3, len(b)); n++ {
		c := b[len(b)-n]
		if utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
