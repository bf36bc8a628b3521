package sed

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"syscall"

	"egressd/hermetic/command"
)

// output is one file that is written.
type output struct {
	w       *bufio.Writer
	c       io.Closer
	missing bool // its last line had no newline
	end     byte
	whole   bool // nobody reads it before it is closed
}

func newWriter(w io.Writer) *bufio.Writer { return bufio.NewWriterSize(w, 32<<10) }

// text writes b, after the newline that the last line may lack.
func (o *output) text(b []byte) error {
	if o.missing {
		o.missing = false
		if err := o.w.WriteByte(o.end); err != nil {
			return err
		}
	}
	_, err := o.w.Write(b)
	return err
}

// line writes b and its end, which is left out when the line read had none.
func (o *output) line(b []byte, end byte, chomped bool) error {
	if err := o.text(b); err != nil {
		return err
	}
	if !chomped {
		o.missing, o.end = true, end
		return o.flushFile()
	}
	if err := o.w.WriteByte(end); err != nil {
		return err
	}
	return o.flushFile()
}

// flushFile writes what a w command's file holds at once: others may read it.
func (o *output) flushFile() error {
	if o.c == nil || o.whole {
		return nil
	}
	return o.w.Flush()
}

func (o *output) close() error {
	err := o.w.Flush()
	if o.c != nil {
		err = errors.Join(err, o.c.Close())
	}
	return err
}

// open opens a file of w, each name once.
func (p *program) open(c *command.Call, name string) (*output, error) {
	if o := p.outs[name]; o != nil {
		return o, nil
	}
	o := &output{}
	switch name {
	case "/dev/stdout":
		o.w = p.std.w
	case "/dev/stderr":
		o.w = newWriter(c.Stderr)
	default:
		f, err := c.FS.OpenFile(c.Path(name), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o666&^c.Umask)
		if err != nil {
			return nil, fail(statusPanic, "couldn't open file %s: %s", name, command.Reason(err))
		}
		o.w, o.c = newWriter(f), f
	}
	p.outs[name] = o
	return o, nil
}

// flushQueue writes what a, r and R have put off.
func (m *machine) flushQueue() error {
	for _, a := range m.queue {
		if a.file == "" {
			if err := m.out.text(a.text); err != nil {
				return err
			}
			continue
		}
		if err := m.copyFile(a.file); err != nil {
			return err
		}
	}
	m.queue = m.queue[:0]
	return nil
}

// copyFile is r; a file that is not there is empty.
func (m *machine) copyFile(name string) error {
	r := m.c.Stdin
	if name != "/dev/stdin" {
		f, err := m.c.FS.Open(m.c.Path(name))
		if err != nil {
			return nil
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || info.IsDir() {
			return nil
		}
		r = f
	}
	if err := m.out.text(nil); err != nil {
		return err
	}
	_, err := io.Copy(m.out.w, r)
	return err
}

// readOne is R: one line at a time.
func (m *machine) readOne(name string) error {
	r, ok := m.readers[name]
	if !ok {
		if name == "/dev/stdin" {
			r = newLineReader(m.c.Stdin)
			r.c = nil
		} else if f, err := m.c.FS.Open(m.c.Path(name)); err == nil {
			r = newLineReader(f)
		} else {
			r = newLineReader(strings.NewReader(""))
		}
		m.readers[name] = r
	}
	line, _, ok, err := r.line(m.delimiter(), m.c.Budget.Limits.Memory/8)
	if ok {
		m.queue = append(m.queue, appended{text: append(line, m.delimiter())})
	}
	return err
}

// inPlace is a file that is edited: a new one beside it takes its place.
type inPlace struct {
	c          *command.Call
	path, temp string
	backup     string
	out        *output
}

func newInPlace(c *command.Call, name, suffix string, info fs.FileInfo) (*inPlace, error) {
	p := &inPlace{c: c, path: c.Path(name)}
	if real, err := c.FS.Lstat(p.path); err == nil && real.Mode()&fs.ModeSymlink != 0 {
		// GNU replaces the link itself
		info, _ = c.FS.Stat(p.path)
	}
	dir, base := "", p.path
	if at := strings.LastIndexByte(p.path, '/'); at >= 0 {
		dir, base = p.path[:at+1], p.path[at+1:]
	}
	if suffix != "" {
		p.backup = backupName(c, dir, base, suffix)
	}
	shown := "./" // as it was called, without its last part
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		shown = name[:at+1]
	}
	for try := 1; ; try++ {
		temp := tempName()
		p.temp = dir + temp
		f, err := c.FS.OpenFile(p.temp, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL, info.Mode().Perm())
		if err == nil {
			p.out = &output{w: newWriter(f), c: f, whole: true}
			return p, c.FS.Chmod(p.temp, info.Mode().Perm())
		}
		if !errors.Is(err, fs.ErrExist) || try == maxTemp {
			return nil, fail(statusPanic, "couldn't open temporary file %s%s: %s", shown, temp, command.Reason(err))
		}
	}
}

// maxTemp is how many names of a temporary file are tried.
const maxTemp = 100

// tempName is a name that does not grow with the file's, which may be as long as
// names can be.
func tempName() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := []byte("sedXXXXXX")
	for i := 3; i < len(b); i++ {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// backupName is where -iSUFFIX keeps the old file.
func backupName(c *command.Call, dir, base, suffix string) string {
	name := base + suffix
	if strings.Contains(suffix, "*") {
		name = strings.ReplaceAll(suffix, "*", base)
	}
	if strings.Contains(name, "/") {
		return c.Path(name)
	}
	return dir + name
}

func (p *inPlace) remove() {
	_ = p.out.close()
	_ = p.c.FS.Remove(p.temp)
}

// finish puts the new file in the place of the old one.
func (p *inPlace) finish() error {
	if err := p.out.close(); err != nil {
		_ = p.c.FS.Remove(p.temp)
		return fail(statusPanic, "couldn't write: %s", command.Reason(err))
	}
	if p.backup != "" {
		if err := p.c.FS.Rename(p.path, p.backup); err != nil {
			_ = p.c.FS.Remove(p.temp)
			return fail(statusPanic, "cannot rename %s: %s", p.path, command.Reason(err))
		}
	}
	if err := p.c.FS.Rename(p.temp, p.path); err != nil {
		_ = p.c.FS.Remove(p.temp)
		return fail(statusPanic, "cannot rename %s: %s", p.temp, command.Reason(err))
	}
	return nil
}
