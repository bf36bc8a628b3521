package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"egressd/event"
)

// archive puts events files away that are full: FILE becomes FILE.TIME-NUMBER, and a new
// FILE is begun. The number is one more than the highest there is, and orders the files
// whatever the clock says.
//
// Threat: log rotation from outside works on the same files (logrotate), or a clock that
// jumps back names two files alike, and a file of the record is written over or removed
// -> FILE is renamed only while it is the file that is open, and never to a name that
// exists; only files with a name of this form are removed, the lowest numbers first. Left
// over: a program that renames FILE between the look and the rename has its own new file
// put away in its place: still nothing is lost. Two daemons that write one FILE.
type archive struct {
	path string
	most int64 // bytes
	keep int   // files that are put away and stay; negative: all
	log  *slog.Logger

	last     int            // the highest number given out; used by replace alone
	retiring sync.WaitGroup // what is put away is made durable in the background
}

// timeForm is how names tell when a file was put away.
const timeForm = "20060102T150405Z"

// replace is for [event.Writer.Rotate].
func (a *archive) replace(old io.Writer) (io.Writer, error) {
	file, ok := old.(*os.File)
	if !ok {
		return nil, errors.New("not a file")
	}
	a.retiring.Wait() // one at a time
	now, err := file.Stat()
	if err == nil && now.Size() < a.most {
		return nil, nil // cut from outside
	}
	away, err := a.putAway(now, err)
	if err != nil {
		return nil, a.failed(err)
	}
	next, err := event.Open(a.path)
	if err != nil {
		if away != "" {
			err = errors.Join(err, os.Rename(away, a.path)) // open for writing it is either way
		}
		return nil, a.failed(err)
	}
	a.retiring.Go(func() { a.retire(file, away) })
	return next, nil
}

// failed tells the log of err without making events wait for it, and reports it.
func (a *archive) failed(err error) error {
	a.retiring.Go(func() {
		a.log.Error("the events file is full and cannot be rotated: it grows, and is tried again in a minute", "err", err)
	})
	return err
}

// putAway renames the file that is open and was found to be now, and reports its new
// name; "": it was moved away already.
func (a *archive) putAway(now fs.FileInfo, err error) (name string, _ error) {
	if err != nil {
		return "", err
	}
	at, err := os.Lstat(a.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(at, now) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	all, err := a.files()
	if err != nil {
		return "", err
	}
	if len(all) > 0 {
		a.last = max(a.last, all[len(all)-1].number)
	}
	a.last++
	name = fmt.Sprintf("%s.%s-%06d", a.path, time.Now().UTC().Format(timeForm), a.last)
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s exists", name)
	}
	return name, os.Rename(a.path, name)
}

// retire makes file durable, closes it, and removes the oldest files that are not kept.
func (a *archive) retire(file *os.File, name string) {
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		a.log.Error("the events file that was put away may not be whole after a crash of the machine", "err", err)
	}
	if name == "" {
		return
	}
	a.log.Info("the events file is full and was put away", "file", name)
	if a.keep < 0 {
		return
	}
	all, err := a.files()
	for len(all) > a.keep && err == nil {
		if err = os.Remove(all[0].name); err == nil {
			a.log.Info("the oldest events file was removed: --events-rotate keep", "file", all[0].name)
		}
		all = all[1:]
	}
	if err != nil {
		a.log.Error("old events files cannot be removed", "err", err)
	}
}

// put is one file that was put away.
type put struct {
	name   string
	number int
}

// files lists what was put away, the oldest first.
func (a *archive) files() (all []put, _ error) {
	dir, base := filepath.Split(a.path)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	form := regexp.MustCompile("^" + regexp.QuoteMeta(base) + `\.[0-9]{8}T[0-9]{6}Z-([0-9]{6,9})$`)
	for _, e := range entries {
		m := form.FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, err
		}
		all = append(all, put{filepath.Join(dir, e.Name()), n})
	}
	slices.SortFunc(all, func(x, y put) int { return x.number - y.number })
	return all, nil
}
