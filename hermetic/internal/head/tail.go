package head

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

type tailing struct {
	ends
	follow bool
	retry  bool
	every  time.Duration
}

func tail(w *gnu.Work) {
	t := tailing{ends: ends{n: 10, delim: '\n'}, every: time.Second}
	if !t.obsolete(w, "tail") {
		return
	}
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "c:,bytes: f F n:,lines: q,quiet ,silent v,verbose z,zero-terminated ,follow:: ,retry s:,sleep-interval: ,max-unchanged-stats: ,pid:")
	if !ok || !t.set(w, sets) {
		return
	}
	if t.n == 0 && !t.flipped && !t.follow {
		return // not even a file is opened
	}
	t.several = len(operands) > 1
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	var followed []*followedFile
	for _, name := range operands {
		f := t.file(w, name)
		if t.follow && (f != nil || t.retry) && name != "-" {
			if f == nil {
				f = &followedFile{name: name}
			}
			followed = append(followed, f)
		}
		if w.Ctx.Err() != nil {
			return
		}
	}
	if t.follow && len(followed) == 0 && w.Status != 0 {
		w.Complain("no files remaining")
	}
	if len(followed) > 0 {
		t.watch(w, followed)
	}
}

func (t *tailing) set(w *gnu.Work, sets []command.Set) bool {
	for _, o := range sets {
		switch o.Name {
		case "bytes", "lines":
			t.bytes = o.Name == "bytes"
			value, from := strings.CutPrefix(o.Value, "+")
			if t.flipped = from; !from {
				value = strings.TrimPrefix(value, "-")
			}
			if !t.count(w, value, value) {
				return false
			}
		case "f", "follow":
			if o.Value != "" && o.Value != "name" && o.Value != "descriptor" {
				w.TryHelp("invalid argument %s for ‘--follow’\nValid arguments are:\n  - ‘descriptor’\n  - ‘name’", gnu.Quote(o.Value))
				return false
			}
			t.follow = true
		case "F":
			t.follow, t.retry = true, true
		case "retry":
			t.retry = true
		case "quiet", "silent":
			t.headers = 'q'
		case "verbose":
			t.headers = 'v'
		case "zero-terminated":
			t.delim = 0
		case "sleep-interval":
			s, err := strconv.ParseFloat(o.Value, 64)
			if err != nil || s < 0 || s > 1e6 {
				w.Die(1, "invalid number of seconds: %s", gnu.Quote(o.Value))
				return false
			}
			t.every = max(10*time.Millisecond, time.Duration(s*float64(time.Second)))
		case "pid":
			w.Refuse("--pid")
			return false
		}
	}
	return true
}

// followedFile is where following has got to.
type followedFile struct {
	name string
	size int64
}

// file writes the end of one file; nil when it could not be opened.
func (t *tailing) file(w *gnu.Work, name string) *followedFile {
	r, err := w.Open(name)
	if err != nil {
		w.Fault("cannot open %s for reading: %s", gnu.QuoteShell(name), command.Reason(err))
		return nil
	}
	defer r.Close()
	t.header(w, name)
	counted := &counter{r: r}
	if err := t.last(w, counted); err != nil && !errors.Is(err, io.EOF) {
		if _, werr := w.Out.Write(nil); werr != nil || w.Ctx.Err() != nil {
			return nil
		}
		if name == "-" {
			name = "standard input"
		}
		w.Fault("error reading %s: %s", gnu.QuoteShell(name), command.Reason(err))
		return nil
	}
	return &followedFile{name: name, size: counted.n}
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (t *tailing) last(w *gnu.Work, r io.Reader) error {
	switch {
	case t.flipped:
		skip := max(0, t.n-1)
		if t.bytes {
			if _, err := io.CopyN(io.Discard, r, skip); err != nil {
				return err
			}
			_, err := io.Copy(w.Out, r)
			return err
		}
		lines := w.Lines(r, t.delim)
		for ; ; skip-- {
			line, err := lines.Next()
			if err != nil {
				return err
			}
			if skip <= 0 {
				if _, err := w.Out.Write(line); err != nil {
					return err
				}
			}
		}
	case t.bytes:
		return t.lastBytes(w, r)
	}
	held := lineRing{most: w.Most(), n: t.n}
	lines := w.Lines(r, t.delim)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if _, err := held.push(line); err != nil {
			return err
		}
	}
	held.each(func(line []byte) { w.Out.Write(line) })
	return nil
}

func (t *tailing) lastBytes(w *gnu.Work, r io.Reader) error {
	var held []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		held = append(held, buf[:n]...)
		if over := int64(len(held)) - t.n; over > 0 && (over > t.n+1<<16 || err != nil) {
			held = append(held[:0], held[over:]...)
		}
		if int64(len(held)) > w.Most() {
			return gnu.ErrMemory
		}
		if errors.Is(err, io.EOF) {
			_, err = w.Out.Write(held)
			return err
		}
		if err != nil {
			return err
		}
	}
}

// watch writes what is added to the files, until the call ends.
func (t *tailing) watch(w *gnu.Work, files []*followedFile) {
	at := files[len(files)-1]
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for w.Out.Flush() == nil {
		select {
		case <-w.Ctx.Done():
			return
		case <-tick.C:
		}
		for _, f := range files {
			more := f.more(w)
			if len(more) > 0 && f != at {
				at = f
				t.header(w, f.name)
			}
			w.Out.Write(more)
		}
	}
}

// more is what has been added to the file since the last look.
func (f *followedFile) more(w *gnu.Work) []byte {
	file, err := w.FS.Open(w.Path(f.name))
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	if info.Size() < f.size {
		w.Complain("%s: file truncated", gnu.QuoteName(f.name))
		f.size = 0
	}
	more := make([]byte, min(info.Size()-f.size, 1<<20))
	n, _ := file.ReadAt(more, f.size)
	f.size += int64(n)
	return more[:n]
}
