// Package approve asks a person, on the terminal, about a destination that no
// rule covers. Everything but a clear yes is a no.
//
//	t := &approve.Terminal{Path: "/dev/tty"}
//	config.Ask = t.Ask
package approve

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"egressd/internal/cli"
	"egressd/policy"
)

// Implementation constants.
const (
	defaultWait = 2 * time.Minute
	maxAnswers  = 4096             // destinations remembered in one run
	quiet       = 10 * time.Second // a no also answers the program's retries
	maxWaiting  = 64               // questions in line; further ones are denied
)

// Terminal asks on a terminal, one question at a time. Concurrent questions about
// one host and port are one question. Set the fields before the first Ask. Safe
// for concurrent use.
type Terminal struct {
	Path string        // the terminal, "/dev/tty". It is opened for each question
	Wait time.Duration // how long to wait for an answer, before it is a no. Zero: 2 minutes

	// Hold stops the program and keeps its output back for the time of a question,
	// until release is called. Then nothing but this process uses the terminal. After
	// an error the answer is no. Nil: the program may hold the terminal, and is only
	// kept from reading it.
	Hold func(ctx context.Context) (release func(), err error)

	// SaveTo is the policy file that Save adds a rule to, for the question. Save lets the
	// person allow a destination in later runs as well. Nil: that is not offered.
	SaveTo string
	Save   func(rule string) error

	mu      sync.Mutex
	turn    chan struct{} // one question at a time
	waiting int
	asking  map[string]*question
	answers map[string]answer
}

// question is one that is on the terminal, or waits for its turn.
type question struct {
	done chan struct{} // closed when ok is set
	ok   bool
}

// answer is a remembered answer.
type answer struct {
	ok    bool
	until time.Time // zero: for the whole run
}

// Ask reports whether a person allows the flow. Without a terminal, an answer in
// time, or room for another question, and at the end of ctx, it is a no.
func (t *Terminal) Ask(ctx context.Context, r policy.Request, d policy.Decision) bool {
	key := fmt.Sprintf("%s:%d", r.Host, r.Port)
	t.mu.Lock()
	if a, ok := t.answers[key]; ok && (a.until.IsZero() || time.Now().Before(a.until)) {
		t.mu.Unlock()
		return a.ok
	}
	if q := t.asking[key]; q != nil {
		t.mu.Unlock()
		select {
		case <-q.done:
			return q.ok
		case <-ctx.Done():
			return false
		}
	}
	if t.waiting >= maxWaiting || len(t.answers) >= maxAnswers {
		t.mu.Unlock()
		return false
	}
	if t.turn == nil {
		t.turn = make(chan struct{}, 1)
		t.asking = make(map[string]*question)
		t.answers = make(map[string]answer)
	}
	q := &question{done: make(chan struct{})}
	t.asking[key] = q
	t.waiting++
	t.mu.Unlock()

	word := t.inTurn(ctx, r, d)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
	delete(t.asking, key)
	q.ok = word == always || word == once || word == saved
	switch word {
	case always, saved, never:
		t.answers[key] = answer{ok: q.ok}
	case no:
		if ctx.Err() == nil { // the flow still waits, so a person said it, or nobody did
			t.answers[key] = answer{until: time.Now().Add(quiet)}
		}
	}
	close(q.done)
	return q.ok
}

// word is what a person typed. The zero word is no.
type word uint8

const (
	no word = iota
	once
	always
	never
	saved // always, in later runs as well
)

// inTurn waits for the terminal and asks.
func (t *Terminal) inTurn(ctx context.Context, r policy.Request, d policy.Decision) word {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return no
	}
	defer func() { <-t.turn }()
	wait := t.Wait
	if wait <= 0 {
		wait = defaultWait
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	asked := query{text: Question(r, d), host: r.Host.String()}
	if rule := d.Suggest(r); t.Save != nil && r.Port != 0 && rule != "" && !strings.HasPrefix(rule, "raw:") {
		asked.rule = rule
		asked.text = t.offer(asked.text, rule)
	}
	return t.ask(ctx, asked)
}

// query is what a person is asked.
type query struct {
	text, host string
	rule       string // that can be saved; "": none
}

// offer is question with the offer to save rule. It stands before the last line, which
// is answered.
func (t *Terminal) offer(question, rule string) string {
	at := strings.LastIndexByte(question, '\n') + 1
	return question[:at] + fmt.Sprintf("launch: s and a part of its name saves %s to %s, for later runs as well\n", cli.Safe(rule), cli.Safe(t.SaveTo)) + question[at:]
}

// save saves the rule of q, and says on out how that went.
func (t *Terminal) save(q query, out io.Writer) {
	text := "launch: saved to " + cli.Safe(t.SaveTo) + "\n"
	if err := t.Save(q.rule); err != nil {
		text = "launch: allowed in this run, and not saved: " + cli.Safe(err.Error()) + "\n"
	}
	_, _ = io.WriteString(out, text) // the answer holds all the same
}

// Question is the text on the terminal.
//
// Threat: a program asks for a host or path made to look like launch's own
// words, or with terminal escapes that hide it -> a Host is canonical LDH text
// or an address, and everything is escaped to printable ASCII on one line all
// the same. Left over: a name that looks like another one (paypa1.com).
func Question(r policy.Request, d policy.Decision) string {
	host := r.Host.String()
	if r.Host.Addr().Is6() {
		host = "[" + host + "]"
	}
	what := fmt.Sprintf("%s:%d", cli.Safe(host), r.Port)
	if r.Method != "" {
		what += " (" + cli.Safe(r.Method) + " " + cli.Safe(r.Path) + ")"
	}
	return fmt.Sprintf("launch: the program wants to reach %s\nlaunch: %s. Allow? [y]es once, [n]o, ne[v]er in this run, or a part of its name (%d letters or more) for always in this run: ", what, d.Reason, minPart)
}

// Available reports an error if nobody can be asked on the terminal at path.
func Available(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("nobody can be asked: %w", err)
	}
	return f.Close()
}

// minPart is how much of a host's name is a yes for the whole run.
const minPart = 4

// names reports whether typed shows that the person has read host: a part of it,
// and not just its last label, which many hosts share.
//
// Threat: a key that the person meant for the program, or a habit of saying "a",
// allows a host for the whole run -> that takes a part of the name. Left over: y,
// which allows one flow.
func names(typed, host string) bool {
	if typed == host {
		return true
	}
	at := strings.Index(host, typed)
	return len(typed) >= minPart && at >= 0 && at < strings.LastIndexAny(host, ".:")
}

// Keys that end a line as well: Ctrl-C and Ctrl-\, for which the answer is no.
const interrupt, quit = 0x03, 0x1c

// read reads one line about q. After a line that is not a clear answer it asks
// again. key is the interrupt or quit that ended it, 0: neither.
func read(in io.Reader, out io.Writer, q query) (w word, key byte) {
	line := make([]byte, 0, 16)
	one := make([]byte, 1)
	for range 4096 {
		if n, err := in.Read(one); err != nil || n != 1 {
			return no, 0
		}
		if one[0] == interrupt || one[0] == quit {
			return no, one[0]
		}
		if one[0] != '\n' && one[0] != '\r' {
			line = append(line, one[0])
			continue
		}
		again := "launch: y, n, v or a part of the name? "
		switch typed := strings.ToLower(strings.TrimSpace(string(line))); {
		case typed == "y" || typed == "yes":
			return once, 0
		case typed == "n" || typed == "no" || typed == "":
			return no, 0
		case typed == "v" || typed == "never":
			return never, 0
		case typed == "a" || typed == "always":
			again = fmt.Sprintf("launch: for always type %d letters or more of the name: ", minPart)
		case names(typed, q.host):
			return always, 0
		case q.rule != "" && names(strings.TrimSpace(strings.TrimPrefix(typed, "s ")), q.host) && strings.HasPrefix(typed, "s "):
			return saved, 0
		case q.rule != "" && (typed == "s" || typed == "save"):
			again = fmt.Sprintf("launch: to save it type s and %d letters or more of the name: ", minPart)
		}
		line = line[:0]
		if _, err := io.WriteString(out, again); err != nil {
			return no, 0
		}
	}
	return no, 0
}
