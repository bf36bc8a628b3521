//go:build linux

package approve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/screen"
	"egressd/policy"
)

// pty is a terminal and the person in front of it.
type pty struct {
	t     *testing.T
	ptm   *os.File
	path  string
	mu    sync.Mutex
	shown bytes.Buffer
	grew  chan struct{}
}

func newPTY(t *testing.T) *pty {
	t.Helper()
	ptm, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	var n int
	raw, err := ptm.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if err := unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			t.Error(err)
		}
		if n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, ptm: ptm, path: fmt.Sprintf("/dev/pts/%d", n), grew: make(chan struct{}, 1)}
	// One open slave keeps the terminal alive between questions.
	keep, err := os.OpenFile(p.path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	go p.watch()
	t.Cleanup(func() { _ = keep.Close(); _ = ptm.Close() })
	return p
}

func (p *pty) watch() {
	buf := make([]byte, 4096)
	for {
		n, err := p.ptm.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.shown.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.grew <- struct{}{}:
		default:
		}
	}
}

func (p *pty) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

// await waits until text has been shown n times.
func (p *pty) await(text string, n int) {
	p.t.Helper()
	late := time.After(10 * time.Second)
	for strings.Count(p.screen(), text) < n {
		select {
		case <-p.grew:
		case <-late:
			p.t.Fatalf("%q was not shown %d times:\n%q", text, n, p.screen())
		}
	}
}

func (p *pty) typed(s string) {
	p.t.Helper()
	if _, err := p.ptm.WriteString(s); err != nil {
		p.t.Fatal(err)
	}
}

func request(t *testing.T, host string) policy.Request {
	t.Helper()
	h, err := policy.ParseHost(host)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Request{Host: h, Port: 443}
}

var notListed = policy.Decision{Reason: policy.ReasonHostNotListed}

// A client that hangs up takes its question with it, and answers nobody else's.
func TestGoneAskerDecidesNothing(t *testing.T) {
	p := newPTY(t)
	term := &Terminal{Path: p.path}
	ask := func(ctx context.Context) <-chan bool {
		said := make(chan bool, 1)
		go func() { said <- term.Ask(ctx, request(t, "a.test"), notListed) }()
		return said
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := ask(ctx)
	p.await("Allow?", 1)
	cancel()
	if <-first {
		t.Error("nobody said yes")
	}
	second := ask(t.Context())
	p.await("Allow?", 2)
	p.typed("y\n")
	if !<-second {
		t.Error("the first client's hanging up answered the second")
	}
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		typed       string
		want        bool
		again, kept bool // is the next flow asked about? else what it gets
	}{
		{"y\n", true, true, false},
		{"YES\r", true, true, false},
		{"a\n\n", false, false, false}, // for the whole run it takes a part of the name
		{"always\nEXAMPLE\n", true, false, true},
		{".com\ncom\nexa\n\n", false, false, false},
		{"api.ex\n", true, false, true},
		{"n\n", false, false, false}, // retries of the moment are not asked about
		{"\n", false, false, false},
		{"v\n", false, false, false},
		{"what?\napi.example.com\n", true, false, true},
		{"\x04", false, false, false}, // end of file
	} {
		t.Run(fmt.Sprintf("%q", tt.typed), func(t *testing.T) {
			p := newPTY(t)
			term := &Terminal{Path: p.path}
			ask := make(chan bool)
			go func() { ask <- term.Ask(t.Context(), request(t, "api.example.com"), notListed) }()
			p.await("in this run: ", 1)
			p.typed(tt.typed)
			if got := <-ask; got != tt.want {
				t.Errorf("typed %q, answer %v", tt.typed, got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { ask <- term.Ask(ctx, request(t, "api.example.com"), notListed) }()
			if tt.again {
				p.await("in this run: ", 2)
				cancel()
			}
			if got := <-ask; got != tt.kept {
				t.Errorf("the next flow gets %v", got)
			}
			cancel()
		})
	}
}

func TestOneQuestionForOneDestination(t *testing.T) {
	p := newPTY(t)
	term := &Terminal{Path: p.path}
	answers := make(chan bool, 20)
	for range 10 {
		go func() { answers <- term.Ask(t.Context(), request(t, "a.example.com"), notListed) }()
	}
	p.await("a.example.com:443", 1)
	for range 10 {
		go func() { answers <- term.Ask(t.Context(), request(t, "b.example.com"), notListed) }()
	}
	p.typed("a.example\n")
	p.await("b.example.com:443", 1)
	p.typed("b.example\n")
	for range 20 {
		if !<-answers {
			t.Error("one of the askers was denied")
		}
	}
	if n := strings.Count(p.screen(), "in this run: "); n != 2 {
		t.Errorf("%d questions:\n%s", n, p.screen())
	}
}

func TestWithoutTerminal(t *testing.T) {
	for _, path := range []string{"/nonexistent", os.DevNull} {
		if (&Terminal{Path: path}).Ask(t.Context(), request(t, "a.example.com"), notListed) {
			t.Errorf("%s said yes", path)
		}
	}
	if Available("/nonexistent") == nil {
		t.Error("a terminal that does not exist is available")
	}
}

func TestNoAnswerIsNo(t *testing.T) {
	p := newPTY(t)
	term := &Terminal{Path: p.path, Wait: 50 * time.Millisecond}
	if term.Ask(t.Context(), request(t, "a.example.com"), notListed) {
		t.Error("silence is a yes")
	}
	p.await("no answer in time", 1)
}

// Keys typed before the question don't answer it, and the terminal's mode is
// put back.
func TestTypedAheadAndMode(t *testing.T) {
	p := newPTY(t)
	tty, err := os.OpenFile(p.path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	raw, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	raw.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG // as an agent's own screen has it
	if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, raw); err != nil {
		t.Fatal(err)
	}
	p.typed("a\n")
	// The kernel carries what is typed to the terminal in its own time.
	ready := []unix.PollFd{{Fd: int32(tty.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(ready, 10_000); n != 1 || err != nil {
		t.Fatalf("the typed keys did not arrive: %v", err)
	}
	term := &Terminal{Path: p.path}
	done := make(chan bool)
	go func() { done <- term.Ask(t.Context(), request(t, "a.example.com"), notListed) }()
	p.await("in this run: ", 1)
	p.typed("n\n")
	if <-done {
		t.Error("keys typed before the question answered it")
	}
	after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if *after != *raw {
		t.Errorf("the terminal's mode was changed: %+v, want %+v", after, raw)
	}
}

// With Hold the terminal is asked for, reset before the question, and given back;
// Ctrl-C is a no, and an interrupt for the program.
func TestHold(t *testing.T) {
	p := newPTY(t)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT)
	defer signal.Stop(interrupted)
	var held, released atomic.Int32
	fail := errors.New("nobody runs")
	var err error
	term := &Terminal{Path: p.path, Hold: func(context.Context) (func(), error) {
		held.Add(1)
		return func() { released.Add(1) }, err
	}}
	said := make(chan bool)
	go func() { said <- term.Ask(t.Context(), request(t, "a.example.com"), notListed) }()
	p.await(screen.Reset+"\r\nlaunch: the program wants", 1)
	p.typed("y\x03")
	if <-said {
		t.Error("Ctrl-C is a yes")
	}
	<-interrupted
	if held.Load() != 1 || released.Load() != 1 {
		t.Errorf("held %d times, released %d", held.Load(), released.Load())
	}
	err = fail
	if term.Ask(t.Context(), request(t, "b.example.com"), notListed) {
		t.Error("a yes although the program could not be held")
	}
	if n := strings.Count(p.screen(), "wants to reach"); n != 1 {
		t.Errorf("%d questions on a terminal that was not ours", n)
	}
}

func TestQuestionIsPlain(t *testing.T) {
	r := request(t, "a.example.com")
	r.Method, r.Path = "GET\x1b[2J", "/\n\rlaunch: allowed\u202e"
	q := Question(r, notListed)
	if n := strings.Count(q, "\n"); n != 1 {
		t.Errorf("%d line ends in %q", n, q)
	}
	for _, c := range q {
		if c != '\n' && (c < ' ' || c > '~') {
			t.Errorf("%q shows %q", q, c)
		}
	}
}

func TestBounds(t *testing.T) {
	p := newPTY(t)
	term := &Terminal{Path: p.path}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range maxWaiting {
		wg.Go(func() { term.Ask(ctx, request(t, fmt.Sprintf("h%d.example.com", i)), notListed) })
	}
	for {
		term.mu.Lock()
		n := term.waiting
		term.mu.Unlock()
		if n == maxWaiting {
			break
		}
		if t.Context().Err() != nil {
			t.Fatal("questions do not line up")
		}
	}
	if term.Ask(t.Context(), request(t, "one.more.example.com"), notListed) {
		t.Error("one too many was allowed")
	}
	cancel()
	wg.Wait()
}

// A lasting yes takes a part of the name as well, and only what can be saved is offered.
func TestSaved(t *testing.T) {
	for _, tt := range []struct {
		typed string
		want  bool
		saves string
		shown string
	}{
		{"s api.ex\n", true, "api.example.com", "saved to /home/u/p.yaml"},
		{"S  EXAMPLE\n", true, "api.example.com", "saved to"},
		{"s\ns .com\nn\n", false, "", "to save it type s and 4 letters"},
		{"example\n", true, "", ""},
		{"s fail\ns example\n", true, "fails", "allowed in this run, and not saved: no room"},
	} {
		t.Run(fmt.Sprintf("%q", tt.typed), func(t *testing.T) {
			p := newPTY(t)
			rules := make(chan string, 1)
			term := &Terminal{Path: p.path, SaveTo: "/home/u/p.yaml", Save: func(rule string) error {
				if tt.saves == "fails" {
					return errors.New("no room")
				}
				rules <- rule
				return nil
			}}
			said := make(chan bool)
			go func() { said <- term.Ask(t.Context(), request(t, "api.example.com"), notListed) }()
			p.await("saves api.example.com to /home/u/p.yaml", 1)
			p.await("in this run: ", 1)
			p.typed(tt.typed)
			if got := <-said; got != tt.want {
				t.Errorf("answer %v", got)
			}
			if tt.shown != "" {
				p.await(tt.shown, 1)
			}
			saved := ""
			select {
			case saved = <-rules:
			default:
			}
			if tt.saves != "fails" && saved != tt.saves {
				t.Errorf("saved %q", saved)
			}
			if tt.want && !term.Ask(t.Context(), request(t, "api.example.com"), notListed) {
				t.Error("it is not allowed for the run")
			}
		})
	}
}
