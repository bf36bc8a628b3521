package vercel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/pty"
	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/fake"
)

// person sits at a terminal.
type person struct {
	*world
	screen, keys *os.File // keys is the end that programs of this machine get

	mu    sync.Mutex
	seen  strings.Builder
	grown chan struct{}
	from  int // of seen: what expect has not matched yet
}

func (w *world) sits(size pty.Size) *person {
	w.Helper()
	screen, keys, err := pty.Open()
	must(w.T, err)
	must(w.T, pty.SetSize(screen, size))
	p := &person{world: w, screen: screen, keys: keys, grown: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := screen.Read(buf)
			p.mu.Lock()
			p.seen.Write(buf[:n])
			p.mu.Unlock()
			select {
			case p.grown <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	w.Cleanup(func() {
		_ = screen.Close()
		_ = keys.Close()
		<-done
	})
	return p
}

// expect waits until text is on the screen, behind what was expected before.
func (p *person) expect(text string) {
	p.Helper()
	late := time.After(30 * time.Second)
	for {
		p.mu.Lock()
		seen := p.seen.String()
		p.mu.Unlock()
		if i := strings.Index(seen[p.from:], text); i >= 0 {
			p.from += i + len(text)
			return
		}
		select {
		case <-p.grown:
		case <-late:
			p.Fatalf("%q did not come; the screen shows %q, notes %q", text, seen, p.said)
		}
	}
}

func (p *person) types(text string) {
	p.Helper()
	_, err := p.screen.WriteString(text)
	must(p.T, err)
}

// modes is how the person's terminal is set.
func (p *person) modes() unix.Termios {
	p.Helper()
	t, err := unix.IoctlGetTermios(int(p.keys.Fd()), unix.TCGETS)
	must(p.T, err)
	return *t
}

type outcome struct {
	res sandbox.Result
	err error
}

// starts runs argv on the person's terminal.
func (p *person) starts(argv ...string) <-chan outcome {
	before := p.modes()
	ended := make(chan outcome, 1)
	spec := p.spec("")
	spec.Argv, spec.Stdin, spec.Stdout, spec.Stderr = argv, p.keys, p.keys, p.keys
	spec.Env = []string{"PATH=/usr/bin:/bin", "PS1=there> "}
	go func() {
		res, err := p.back.Run(p.Context(), spec)
		if now := p.modes(); now != before {
			p.Errorf("the terminal was left as %+v, it was %+v", now, before)
		}
		ended <- outcome{res, err}
	}()
	return ended
}

func (p *person) ends(o <-chan outcome, code int) {
	p.Helper()
	if got := <-o; got.err != nil || got.res.ExitCode != code {
		p.Fatalf("got %d, %v, want %d; the screen shows %q", got.res.ExitCode, got.err, code, p.seen.String())
	}
}

// A shell: it has a terminal of this one's size, keys reach it as they are, Ctrl-C
// interrupts what runs in it and not launch, what it changed comes back.
func TestTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	w.files("f", "here")
	p := w.sits(pty.Size{Cols: 101, Rows: 33})
	ended := p.starts("sh", "-i")
	p.expect("there> ")
	p.types("test -t 0 && test -t 1 && test -t 2 && stty size; cat f; pwd\r")
	p.expect("33 101\r\nhere")
	p.expect("/vercel/workspace\r\n")
	must(t, pty.SetSize(p.screen, pty.Size{Cols: 77, Rows: 22}))
	must(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH)) // the kernel tells the foreground of a controlling terminal
	// The size and the keys are sent by two goroutines.
	p.types("while [ \"$(stty size)\" != '22 77' ]; do :; done; echo res''ized\r")
	p.expect("resized")
	p.expect("there> ")
	p.types("sh -c 'echo run\"ni\"ng; while :; do sleep 1; done'\r")
	p.expect("running")
	p.types("\x03")
	p.expect("there> ")
	p.types("echo made >g; echo go''ing\r")
	p.expect("going")
	p.types("exit 7\r")
	p.ends(ended, 7)
	w.has("g", "made\n")
	w.clean()
}

// Output is whole, however much there is, and what was typed ahead arrives.
func TestTerminalOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	p := w.sits(pty.Size{Cols: 80, Rows: 24})
	ended := p.starts("sh", "-c", "stty -echo; echo begin; read x; seq 1 50000; echo got $x; exit 3")
	p.expect("begin\r\n")
	p.types("ahead\r")
	p.ends(ended, 3)
	var want strings.Builder
	for i := range 50000 {
		fmt.Fprintf(&want, "%d\r\n", i+1)
	}
	p.expect(want.String() + "got ahead\r\n")
	w.clean()
}

// A program that is not there, and one that runs too long.
func TestTerminalEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	p := w.sits(pty.Size{Cols: 80, Rows: 24})
	p.ends(p.starts("no-such-program"), 127)
	spec := w.spec("trap 'echo late >>h' HUP TERM; echo begun >h; while :; do sleep 0.1; done")
	spec.Grace = 300 * time.Millisecond
	spec.Stdin, spec.Stdout, spec.Timeout = p.keys, p.keys, time.Second
	res, err := w.back.Run(t.Context(), spec)
	if err != nil || res.ExitCode != exitTimeout || !res.TimedOut {
		t.Errorf("got %+v, %v", res, err)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "h")); err != nil || !strings.HasPrefix(string(b), "begun\nlate\n") {
		t.Errorf("it was not hung up: %q, %v", b, err)
	}
	w.clean()
}

// The connection breaks, and the session ends: both are told apart from an end of
// the program, and the terminal is given back.
func TestTerminalLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	var mu sync.Mutex
	var conns []net.Conn
	w.client.HTTP = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, c)
		return c, err
	}}}
	p := w.sits(pty.Size{Cols: 80, Rows: 24})
	ended := p.starts("sh", "-c", "echo kept >kept; echo begin; read x")
	p.expect("begin")
	mu.Lock()
	for _, c := range conns {
		_ = c.Close() // also those that have ended
	}
	mu.Unlock()
	if got := <-ended; got.res.ExitCode != exitLauncher || !errors.Is(got.err, errTerminalLost) {
		t.Errorf("got %+v", got)
	}
	w.has("kept", "kept\n")
	ended = p.starts("sh", "-c", "echo begin; read x")
	p.expect("begin")
	for s, err := range w.client.Sessions(t.Context(), api.ListOptions{}) {
		must(t, err)
		if !s.Status.Final() {
			_, err := w.client.Stop(t.Context(), s.ID)
			must(t, err)
		}
	}
	if got := <-ended; got.res.ExitCode != exitLauncher || got.err == nil || !strings.Contains(got.err.Error(), "the sandbox ended") {
		t.Errorf("got %+v", got)
	}
	w.client.HTTP.CloseIdleConnections()
	w.clean()
}

// What is no terminal on one side gets none there.
func TestTerminalPiped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	p := w.sits(pty.Size{Cols: 80, Rows: 24})
	spec := w.spec("test -t 0 || test -t 1 || echo none")
	spec.Stdin = p.keys
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 || w.read(w.out) != "none\n" {
		t.Errorf("got %+v, %v, %q", res, err, w.read(w.out))
	}
	w.clean()
}
