// Package trail is the record of one run: the audit file, the totals for the
// summary, and what is learned. It owns them from the first event to the last.
//
//	t, err := trail.Open(trail.Config{Events: "run.jsonl", Policy: policy, Stdout: os.Stdout})
//	err = t.Started(isolation, limits, argv)
//	... run, with t.Sink() ...
//	err = t.Ended(code, took, err)
//	err = t.Close(os.Stderr, style) // prints the summary
package trail

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"egressd/event"
	"egressd/event/flood"
	"egressd/internal/run/learn"
	"egressd/internal/run/notify"
	"egressd/internal/run/summary"
	"egressd/policy"
)

// Config is what to record.
type Config struct {
	Events string         // events file; "-" is Stdout; "" keeps none
	Learn  string         // new policy file to write at the end; "" learns nothing
	Inputs []string       // files that the run is made of: Events may be none of them
	Policy *policy.Policy // the policy of the run
	Stdout *os.File
	Found  []string  // policy files that count without being named, for the record
	Notify io.Writer // told of each refusal at once; nil: nobody
}

// Trail is one run's record. Safe for concurrent use between Open and Close.
type Trail struct {
	Session string // a random name for the run, in every event

	config    Config
	isolation string
	met       string // limits, with commas between
	code      int    // the exit code, once it has ended
	totals    summary.Collector
	learned   learn.Recorder
	writer    *event.Writer
	repeats   *flood.Sink // in front of writer
	file      *os.File    // nil when the writer has none of its own
	sinks     event.Fanout
}

// Open starts a record. The caller closes it.
func Open(c Config) (*Trail, error) {
	t := &Trail{Session: rand.Text()[:16], config: c}
	if c.Learn != "" {
		if _, err := os.Lstat(c.Learn); err == nil {
			return nil, fmt.Errorf("--learn %s exists already: remove it, or name another file", c.Learn)
		}
	}
	for _, name := range c.Inputs {
		if sameFile(name, c.Events) {
			return nil, fmt.Errorf("--events %s is the policy file or one of its lists: name another file", c.Events)
		}
	}
	if c.Events != "" {
		out := c.Stdout
		if c.Events != "-" {
			var err error
			if t.file, err = event.Open(c.Events); err != nil {
				return nil, err
			}
			out = t.file
		}
		t.writer = &event.Writer{W: out, Resource: map[string]string{}} // the machine's name is nobody's business
		t.repeats = &flood.Sink{To: t.writer}
		t.sinks = append(t.sinks, t.repeats)
	}
	if c.Learn != "" {
		t.learned.Static, t.learned.Files = c.Policy.Static, c.Policy.FileRules()
		t.sinks = append(t.sinks, &t.learned)
	}
	t.sinks = append(t.sinks, &t.totals)
	if c.Notify != nil {
		t.sinks = append(t.sinks, &notify.Sink{W: c.Notify})
	}
	return t, nil
}

// sameFile reports whether a and b are names of one regular file.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && x.Mode().IsRegular() && os.SameFile(x, y)
}

// Sink takes the events of the run.
func (t *Trail) Sink() event.Sink { return t.sinks }

// Also gives the events of the run to one more sink, which was not there when the
// record was opened. It is called before the first event.
func (t *Trail) Also(s event.Sink) { t.sinks = append(t.sinks, s) }

// Protect lists the names of this record that nobody inside may use: a regular file
// or a pipe. A tier leaves those out that mean something else inside, as in /dev.
func (t *Trail) Protect() []string {
	if t.file == nil {
		return nil
	}
	if info, err := t.file.Stat(); err != nil || info.Mode()&os.ModeDevice != 0 {
		return nil
	}
	return []string{t.config.Events}
}

// IsStdout reports whether the record was asked for on the standard output, by
// whatever name.
func (t *Trail) IsStdout() bool {
	switch t.config.Events {
	case "-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		return true
	}
	return false
}

// Shares reports whether f is the file, pipe or socket that the record goes to. Of a
// device, such as a terminal or /dev/null, it reports false. f may be nil.
func (t *Trail) Shares(f *os.File) bool {
	record := t.file
	if t.config.Events == "-" {
		record = t.config.Stdout
	}
	if f == nil || record == nil {
		return false
	}
	x, errX := record.Stat()
	y, errY := f.Stat()
	return errX == nil && errY == nil && x.Mode()&os.ModeDevice == 0 && os.SameFile(x, y)
}

// Changed records a change that an overlay kept out of the workspace: 'A' added, 'M'
// modified or 'D' deleted.
func (t *Trail) Changed(path string, kind byte) error {
	kinds := map[byte]event.Change{'A': event.Added, 'M': event.Modified, 'D': event.Deleted}
	return t.emit(&event.FileChanged{Path: path, Change: kinds[kind]})
}

// Replaced records that a protected file was replaced; see [event.FileReplaced].
func (t *Trail) Replaced(path, was, now string, exposed bool) error {
	return t.emit(&event.FileReplaced{Path: path, Was: was, Now: now, Exposed: exposed})
}

// Started records that argv is about to run, within limits as --limit spells them, and
// what the policy says of files. Of the command line only a hash is kept: people put
// secrets there.
func (t *Trail) Started(isolation, limits string, argv []string) error {
	t.isolation = isolation
	return t.emit(&event.Command{ArgvHash: ArgvHash(argv), Files: t.config.Policy.FileRules().Lines(), PolicyFiles: t.config.Found, Limits: limits})
}

// ArgvHash is what a record says of a command line.
func ArgvHash(argv []string) string {
	sum := sha256.Sum256([]byte(strings.Join(argv, "\x00")))
	return hex.EncodeToString(sum[:])
}

// Met notes which limits the run met, for Ended.
func (t *Trail) Met(limits []string) { t.met = strings.Join(limits, ",") }

// Ended records how the run ended: failed when runErr says so.
func (t *Trail) Ended(exitCode int, took time.Duration, runErr error) error {
	took, t.code = max(took, 0), exitCode
	if runErr != nil {
		return t.emit(&event.RunFailed{ExitCode: exitCode, Duration: took, Error: runErr.Error(), LimitsMet: t.met})
	}
	return t.emit(&event.RunCompleted{ExitCode: exitCode, Duration: took, LimitsMet: t.met})
}

// nothingRan reports whether there was no program to learn from: by its exit code it
// was not found, or could not be executed, and nothing was asked for. A policy that
// allows nothing would stand in the way of the next try.
func (t *Trail) nothingRan() bool {
	const launcher, notExecutable, notFound = 125, 126, 127
	return t.learned.Empty() && (t.code == launcher || t.code == notExecutable || t.code == notFound)
}

// Counts reports how many destinations were allowed, blocked, and allowed but not reached.
func (t *Trail) Counts() (allowed, blocked, failed int) { return t.totals.Counts() }

func (t *Trail) emit(body event.Body) error {
	return t.sinks.Emit(event.Event{
		Session: t.Session, Isolation: t.isolation, Policy: t.config.Policy.Digest(), Body: body,
	})
}

// Close ends the record: it flushes the events, writes what was learned, and
// prints the summary on w (nil: none) in style. The error says what is not whole; a
// summary that nobody reads is not part of the record.
func (t *Trail) Close(w io.Writer, style summary.Style) error {
	var errs []error
	if t.writer != nil {
		errs = append(errs, t.repeats.Close(), t.writer.Close())
	}
	if t.file != nil {
		errs = append(errs, t.file.Close())
	}
	if t.config.Learn != "" && !t.nothingRan() {
		errs = append(errs, t.learned.WriteFile(t.config.Learn))
	}
	if w != nil {
		_ = t.totals.Write(w, style)
	}
	return errors.Join(errs...)
}
