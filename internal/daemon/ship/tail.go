package ship

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tail reads whole lines of an events file, and of those that were rotated away
// before, oldest first.
type tail struct {
	events string
	state  string   // names that begin so are not events
	at     position // behind the last line that next gave
	log    *slog.Logger

	f    *os.File // at; nil: not found yet
	left []byte   // read, behind at
}

func (t *tail) close() {
	if t.f != nil {
		_ = t.f.Close() // it was read only
	}
}

// next reports lines behind the position, and moves it behind them; none: there are
// none yet. A line without its end waits for it.
func (t *tail) next() ([][]byte, error) {
	for {
		if t.f == nil {
			if ok, err := t.find(); !ok {
				return nil, err
			}
		}
		lines, err := t.lines()
		if len(lines) > 0 || err != nil {
			return lines, err
		}
		ended, err := t.ended()
		if !ended {
			return nil, err
		}
		// Its writer has left it: what came meanwhile is its last.
		if lines, err := t.lines(); len(lines) > 0 || err != nil {
			return lines, err
		}
		if ok, err := t.follow(); !ok {
			return nil, err
		}
	}
}

// lines reads a batch from the open file.
func (t *tail) lines() (lines [][]byte, err error) {
	if t.at.First == "" {
		if t.at.First, err = firstOf(t.f); err != nil {
			return nil, err
		}
	}
	total := 0
	for len(lines) < maxLines && total < maxBytes {
		if i := bytes.IndexByte(t.left, '\n'); i >= 0 {
			if i > 0 {
				lines = append(lines, bytes.Clone(t.left[:i]))
			}
			total += i
			t.left = t.left[i+1:]
			t.at.Offset += int64(i + 1)
			continue
		}
		if len(t.left) >= maxBytes {
			t.log.Error("a line of the events is longer than any that egressd writes, and is left out", slog.Int64("at", t.at.Offset))
			t.at.Offset += int64(len(t.left))
			t.left = nil
		}
		n := len(t.left)
		buf := slices.Grow(t.left, 64<<10)
		m, err := t.f.ReadAt(buf[n:cap(buf)], t.at.Offset+int64(n))
		t.left = buf[:n+m]
		if m == 0 && (err == io.EOF || err == nil) { //nolint:errorlint // io.ReaderAt: EOF comes bare
			return lines, nil
		}
		if err != nil && err != io.EOF { //nolint:errorlint // as above
			return lines, err
		}
	}
	return lines, nil
}

// ended reports whether another file has taken the open one's place.
func (t *tail) ended() (bool, error) {
	info, err := os.Stat(t.events)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // between rename and create
	}
	if err != nil {
		return false, err
	}
	id, err := identify(info)
	if err != nil || !t.at.same(id) {
		return err == nil, err
	}
	if info.Size() < t.at.Offset { // copytruncate
		t.log.Warn("the events file was cut: what was in it and not shipped yet is lost", slog.String("file", t.events))
		t.at.Offset, t.left = 0, nil
	}
	return false, nil
}

// candidate is a file of events.
type candidate struct {
	name string
	id   position
	when time.Time
}

// packed are the names of files that were compressed: they are shipped before that.
var packed = []string{".gz", ".xz", ".zst", ".bz2"}

// candidates are the files that were rotated away, oldest first, and the one that is
// written to.
func (t *tail) candidates() ([]candidate, error) {
	names, err := filepath.Glob(escapeGlob(t.events) + ".*")
	if err != nil {
		return nil, err
	}
	var all []candidate
	add := func(name string) {
		info, failed := os.Stat(name)
		if failed != nil || !info.Mode().IsRegular() {
			return // gone meanwhile, or none of ours
		}
		id, failed := identify(info)
		err = errors.Join(err, failed)
		all = append(all, candidate{name, id, info.ModTime()})
	}
	for _, name := range names {
		if ext := filepath.Ext(name); !slices.Contains(packed, ext) && !strings.HasPrefix(name, t.state) {
			add(name)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(a.when.Compare(b.when), strings.Compare(a.name, b.name)) })
	add(t.events)
	return all, err
}

// find opens the file that the position is in, or the oldest one.
func (t *tail) find() (bool, error) {
	all, err := t.candidates()
	if err != nil || len(all) == 0 {
		return false, err
	}
	for _, c := range all {
		if !t.at.same(c.id) {
			continue
		}
		if first, err := firstLine(c.name); err != nil || first != t.at.First {
			break // another file has got its number
		}
		return t.open(c, t.at.Offset)
	}
	if t.at.Ino != 0 {
		t.log.Error("the file that was shipped last is not there any more: lines that were rotated away since are lost; keep more of them", slog.String("goes on with", all[0].name))
	}
	return t.open(all[0], 0)
}

// follow opens the file behind the open one.
func (t *tail) follow() (bool, error) {
	all, err := t.candidates()
	if err != nil {
		return false, err
	}
	for i, c := range all {
		if t.at.same(c.id) && i+1 < len(all) {
			return t.open(all[i+1], 0)
		}
	}
	if len(all) == 0 {
		return false, nil
	}
	return t.open(all[0], 0) // removed as soon as it was read
}

func (t *tail) open(c candidate, offset int64) (bool, error) {
	f, err := os.Open(c.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // renamed meanwhile: looked for again
	}
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, errors.Join(err, f.Close())
	}
	if id, err := identify(info); err != nil || !id.same(c.id) {
		return false, errors.Join(err, f.Close()) // another file has its name by now
	}
	t.close()
	t.f, t.left = f, nil
	t.at = c.id
	t.at.Offset = min(offset, info.Size())
	return true, nil
}

// firstLine is a hash of the first line of a file, which no other file has: boot and
// seq are in it. "": there is none yet.
func firstLine(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return firstOf(f)
}

func firstOf(f io.ReaderAt) (string, error) {
	buf := make([]byte, 4<<10)
	n, err := f.ReadAt(buf, 0)
	if err != nil && err != io.EOF { //nolint:errorlint // io.ReaderAt: EOF comes bare
		return "", err
	}
	line, _, whole := bytes.Cut(buf[:n], []byte("\n"))
	if !whole && n < len(buf) {
		return "", nil
	}
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:16]), nil
}

// escapeGlob makes a pattern that matches name alone.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}
