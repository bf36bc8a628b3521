// Package journal keeps a record of the last runs: what ran, and what was decided. It
// is on unless it is switched off, and bounded in number, size and age.
//
//	e, err := store.Begin(journal.Head{Program: "claude", Session: session})
//	... run, with e as one of the event sinks ...
//	err = e.End(journal.Ending{ExitCode: code})
//
//	runs, err := store.List() // the newest first
//
// It is for the person who asks later what a run did. It is not the audit trail: a line
// that finds no room is dropped and counted, and no flow waits for it. For a record
// without which nothing leaves there is --events.
//
// Threat: a program reads what other runs asked for, or changes what is on record of its
// own -> the directory is among launch's records, which the tiers hide; files are 0600 in
// a directory that is this user's alone. Left over: with --isolation env nothing is hidden.
package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"egressd/event"
	"egressd/event/flood"
	"egressd/internal/run/feed"
)

// Bounds of a store. What is older, or beyond them, goes when a run ends; a run that is
// not over stays. Looking at all runs takes longer than recording one, so one ending in
// pruneOneIn does it, and each that wrote more than pruneAfter.
const (
	MaxRuns  = 100
	MaxAge   = 30 * 24 * time.Hour
	MaxBytes = 64 << 20 // of all runs together
	maxRun   = 4 << 20  // bytes of one run's events
	maxQueue = 1 << 20  // bytes that wait for the disk

	pruneOneIn = 16
	pruneAfter = 256 << 10 // bytes of events
)

// Head says what a run was. Of the command line it has the program's name alone: people
// put secrets into arguments.
type Head struct {
	Version   int       `json:"version"` // 1
	ID        string    `json:"id"`
	Session   string    `json:"session_id"` // as in the events
	Program   string    `json:"program"`    // without its directory
	Directory string    `json:"directory"`  // the working directory
	Tier      string    `json:"tier"`
	Started   time.Time `json:"started"`
	Ending    *Ending   `json:"ended,omitempty"` // nil: it goes on, or launch was killed
}

// Ending says how a run ended.
type Ending struct {
	Time       time.Time `json:"time"`
	DurationMS int64     `json:"duration_ms"`
	ExitCode   int       `json:"exit_code"`
	Error      string    `json:"error,omitempty"` // of launch
	Allowed    int       `json:"allowed"`         // destinations
	Blocked    int       `json:"blocked"`         // destinations
	Failed     int       `json:"failed"`          // destinations that were allowed and not reached
	Lost       int64     `json:"lost,omitempty"`  // events that found no room
}

// Store is a directory of runs. Safe for concurrent use by processes.
type Store struct {
	Dir string // absolute, this user's alone; it is made when a run begins
	Now func() time.Time

	most  int // runs; zero: MaxRuns
	oneIn int // endings that prune; zero: pruneOneIn
}

// Entry is the record of one run that goes on. It is an event sink. Safe for concurrent
// use.
type Entry struct {
	store  Store
	head   Head
	name   string // of the files, without an ending
	file   *os.File
	feed   *feed.Feed
	writer *event.Writer
	sums   *flood.Sink // in front of writer
}

// Names of the files of a run.
const (
	eventsEnd = ".jsonl"
	headEnd   = ".json"
	newEnd    = ".new" // of a file on its way to its name
)

// stamp is the time in the names of files.
const stamp = "20060102T150405.000000000Z"

// Begin begins the record of a run. It sets what of h is not set: version, ID, time.
// The caller ends it.
func (s Store) Begin(h Head) (*Entry, error) {
	if err := os.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := private(s.Dir); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Dir, err)
	}
	if len(h.Session) < idLen {
		return nil, errors.New("the run has no name")
	}
	h.Version, h.ID, h.Started = 1, strings.ToLower(h.Session[:idLen]), s.Now()
	e := &Entry{store: s, head: h, name: filepath.Join(s.Dir, h.Started.UTC().Format(stamp)+"-"+h.ID)}
	var err error
	made := e.name + eventsEnd + newEnd
	if e.file, err = os.OpenFile(made, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	if err = lock(e.file); err == nil { // before it has its name: else it looks like a run that is over
		err = e.writeHead()
	}
	if err == nil {
		err = os.Rename(made, e.name+eventsEnd)
	}
	if err != nil {
		_ = e.file.Close()
		return nil, errors.Join(err, e.remove())
	}
	e.feed = feed.New(e.file, feed.Bounds{Queue: maxQueue, Total: maxRun})
	e.writer = &event.Writer{W: e.feed, Resource: map[string]string{}}
	e.sums = &flood.Sink{To: e.writer}
	return e, nil
}

// idLen is the length of an ID.
const idLen = 6

// ID is what a person calls the run.
func (e *Entry) ID() string { return e.head.ID }

// Emit implements [event.Sink]. It never fails.
func (e *Entry) Emit(ev event.Event) error {
	_ = e.sums.Emit(ev) // the feed takes it, or counts it as lost
	return nil
}

// writeHead writes the head, whole or not at all.
func (e *Entry) writeHead() error {
	data, err := json.Marshal(e.head)
	if err != nil {
		return err
	}
	made := e.name + headEnd + newEnd
	if err := os.WriteFile(made, append(data, '\n'), 0o600); err != nil {
		_ = os.Remove(made)
		return err
	}
	return os.Rename(made, e.name+headEnd)
}

func (e *Entry) remove() error {
	for _, end := range []string{eventsEnd, eventsEnd + newEnd, headEnd} {
		if err := os.Remove(e.name + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Drop takes back the record of a run that did not begin.
func (e *Entry) Drop() error {
	_, _ = e.feed.Close()
	return errors.Join(e.file.Close(), e.remove())
}

// End ends the record. end.Time, DurationMS and Lost are set here. The error says that
// the record is not whole.
func (e *Entry) End(end Ending) error {
	_ = errors.Join(e.sums.Close(), e.writer.Close()) // neither fails with a feed
	lost, err := e.feed.Close()
	end.Time, end.Lost = e.store.Now(), lost
	end.DurationMS = end.Time.Sub(e.head.Started).Milliseconds()
	e.head.Ending = &end
	due := e.pruneDue()
	err = errors.Join(err, e.writeHead(), e.file.Close())
	if due {
		err = errors.Join(err, e.store.prune())
	}
	return err
}

// pruneDue reports whether this ending looks at all runs. IDs are random.
func (e *Entry) pruneDue() bool {
	sum := 0
	for _, c := range []byte(e.head.ID) {
		sum += int(c)
	}
	info, err := e.file.Stat()
	return sum%cmp.Or(e.store.oneIn, pruneOneIn) == 0 || err != nil || info.Size() > pruneAfter
}
