package journal

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"egressd/internal/cli"
)

// maxHead bounds what is read of a head, in bytes.
const maxHead = 64 << 10

// Run is a run on record.
type Run struct {
	Head
	Going bool // it is not over

	path string // of the events
	size int64  // of the events, in bytes
}

// List lists the runs on record, the newest first. What is no record of a run is left
// out.
func (s Store) List() ([]Run, error) {
	files, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := private(s.Dir); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Dir, err)
	}
	var runs []Run
	for _, f := range slices.Backward(files) { // their names begin with the time
		base, ok := strings.CutSuffix(f.Name(), eventsEnd)
		if !ok || !f.Type().IsRegular() {
			continue
		}
		if r, err := s.read(filepath.Join(s.Dir, base)); err == nil {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// read reads the head of the run whose files are called name.
func (s Store) read(name string) (Run, error) {
	r := Run{path: name + eventsEnd}
	events, err := os.Open(r.path)
	if err != nil {
		return r, err
	}
	defer events.Close()
	info, err := events.Stat()
	if err != nil {
		return r, err
	}
	r.size, r.Going = info.Size(), held(events)
	head, err := os.Open(name + headEnd)
	if err != nil {
		return r, err
	}
	defer head.Close()
	data, err := io.ReadAll(io.LimitReader(head, maxHead))
	if err == nil {
		err = json.Unmarshal(data, &r.Head)
	}
	if err == nil && (r.Version != 1 || r.ID == "") {
		err = errors.New("no record of a run")
	}
	return r, err
}

// Last is what a person may write for the newest run.
const Last = "last"

// Find finds the run whose ID begins with word, or the newest for "last".
func (s Store) Find(word string) (Run, error) {
	runs, err := s.List()
	if err != nil {
		return Run{}, err
	}
	if len(runs) == 0 {
		return Run{}, errors.New("no run is on record yet (a run with --no-record never is)")
	}
	if word == Last {
		return runs[0], nil
	}
	var found []Run
	for _, r := range runs {
		if strings.HasPrefix(r.ID, strings.ToLower(word)) || strings.EqualFold(r.Session, word) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Run{}, fmt.Errorf("%s: no run of that name is on record: launch logs lists them", cli.Safe(word))
	}
	return Run{}, fmt.Errorf("%s: %d runs begin like that: write more of the name", cli.Safe(word), len(found))
}

// Events opens the events of r, in JSON Lines. The caller closes them.
func (r Run) Events() (*os.File, error) { return os.Open(r.path) }

// pollEvery is how often Follow looks for more.
const pollEvery = 100 * time.Millisecond

// Follow calls line for each event of r, without the line break, as they come, until the
// run is over, ctx ends or line reports an error.
func (r Run) Follow(ctx context.Context, line func([]byte) error) error {
	f, err := r.Events()
	if err != nil {
		return err
	}
	defer f.Close()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	in := bufio.NewReader(f)
	var half []byte
	for {
		over := !held(f) // before reading: what is written until then is read
		for {
			part, err := in.ReadSlice('\n')
			half = append(half, part...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
			if len(half) > maxRun {
				return errors.New("a line of the record is too long")
			}
			if err == nil {
				if err := line(half[:len(half)-1]); err != nil {
					return err
				}
				half = half[:0]
			}
		}
		if over {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Each calls line for each event of r that is on record now, as Follow does.
func (r Run) Each(line func([]byte) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Follow(ctx, line); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// prune removes runs beyond the bounds, the oldest first. It reads no
// heads, because it is done by runs that end.
func (s Store) prune() error {
	all, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	most := cmp.Or(s.most, MaxRuns)
	var total int64
	var errs []error
	n := 0
	for _, f := range slices.Backward(all) { // their names begin with the time
		base, ok := strings.CutSuffix(f.Name(), eventsEnd)
		if !ok || !f.Type().IsRegular() {
			continue
		}
		info, gone := f.Info() // gone: another launcher removed it
		began, foreign := time.Parse(stamp, base[:min(len(base), len(stamp))])
		if gone != nil || foreign != nil {
			continue
		}
		total += info.Size()
		n++
		if n <= most && total <= MaxBytes && s.Now().Sub(began) <= MaxAge {
			continue
		}
		old := Entry{name: filepath.Join(s.Dir, base)}
		if !goesOn(old.name + eventsEnd) {
			errs = append(errs, old.remove())
		}
	}
	left, err := filepath.Glob(filepath.Join(s.Dir, "*"+eventsEnd+newEnd))
	errs = append(errs, err)
	for _, name := range left { // of launchers that were killed as they began
		info, err := os.Lstat(name)
		if err == nil && s.Now().Sub(info.ModTime()) > leftFor {
			gone := Entry{name: strings.TrimSuffix(name, eventsEnd+newEnd)}
			errs = append(errs, gone.remove())
		}
	}
	return errors.Join(errs...)
}

// goesOn reports whether the run with this events file is not over.
func goesOn(events string) bool {
	f, err := os.Open(events)
	if err != nil {
		return false
	}
	defer f.Close()
	return held(f)
}

// leftFor is how old the beginning of a record is that nobody goes on with.
const leftFor = time.Hour
