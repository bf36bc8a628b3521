//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain turns the test binary into egressd, for the scripts and for start.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"egressd": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
	})
}

// patience is how long a test waits for what should happen at once.
const patience = 20 * time.Second

// process is a daemon under test, the real program.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	log    *logBuffer
	events *logBuffer
	ended  chan struct{}
	err    error // how it ended, once ended is closed
}

// start runs egressd with args and waits until it is ready. Doors at port 0 are
// found with addr.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := launch(t, exec.Command("egressd", args...))
	p.wait("msg=ready")
	return p
}

// launch starts a command that is, or becomes, egressd. The test ends it.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	return launchWith(t, cmd, nil)
}

// launchWith is launch with a standard output of the test's own; nil: events.
func launchWith(t *testing.T, cmd *exec.Cmd, stdout *os.File) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, log: newLogBuffer(), events: newLogBuffer(), ended: make(chan struct{})}
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "EGRESSD_") }), cmd.Env...)
	cmd.Stdout, cmd.Stderr = p.events, p.log
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.reap()
	t.Cleanup(p.kill)
	return p
}

func (p *process) reap() {
	p.err = p.cmd.Wait()
	close(p.ended)
	p.log.stop()
	p.events.stop()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
	if p.t.Failed() {
		p.t.Logf("log of %v:\n%s\nevents:\n%s", p.cmd.Args, p.log, p.events)
	}
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end and reports the exit code.
func (p *process) exit(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines go to the log
		<-p.ended
		p.t.Fatalf("egressd still runs after %v", within)
		return 0
	}
}

// wait waits for a line of the log that holds every one of texts, and reports it.
func (p *process) wait(texts ...string) string {
	p.t.Helper()
	return p.log.wait(p.t, texts...)
}

// addr reports where a door of this kind listens.
func (p *process) addr(kind string) string {
	p.t.Helper()
	line := p.wait("msg=listening", "door="+kind+" ")
	_, rest, _ := strings.Cut(line, "addr=")
	addr, _, _ := strings.Cut(rest, " ")
	return strings.Trim(addr, `"`)
}

// logBuffer keeps what a program writes, and tells who waits for a line.
type logBuffer struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	more  chan struct{} // closed and replaced at each write
	ended bool
}

func newLogBuffer() *logBuffer { return &logBuffer{more: make(chan struct{})} }

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.more)
	l.more = make(chan struct{})
	return l.buf.Write(p)
}

func (l *logBuffer) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	close(l.more)
	l.more = make(chan struct{})
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logBuffer) find(texts []string) (line string, more chan struct{}, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if !strings.HasSuffix(line, "\n") {
			continue
		}
		if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(line, s) }) {
			return line, nil, false
		}
	}
	return "", l.more, l.ended
}

// wait waits for a whole line that holds every one of texts.
func (l *logBuffer) wait(t *testing.T, texts ...string) string {
	t.Helper()
	end := time.After(patience)
	for {
		line, more, ended := l.find(texts)
		if line != "" {
			return line
		}
		if ended {
			t.Fatalf("it ended without %q:\n%s", texts, l)
		}
		select {
		case <-more:
		case <-end:
			t.Fatalf("no line with %q within %v:\n%s", texts, patience, l)
		}
	}
}

// count reports how many events have these fields, as JSON spells them.
func (l *logBuffer) count(fields ...string) (n int) {
	for line := range strings.Lines(l.String()) {
		if json.Valid([]byte(line)) && !slices.ContainsFunc(fields, func(s string) bool { return !strings.Contains(line, s) }) {
			n++
		}
	}
	return n
}

// echo is an origin that sends back what it gets; it reports its port.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				stop := context.AfterFunc(t.Context(), func() { c.Close() })
				defer stop()
				_, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) // without pipes, of which there would be thousands
			})
		}
	})
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// tunnel is a connection through the gate.
type tunnel struct {
	net.Conn
	r *bufio.Reader
}

// errDenied is a refusal in the door's own words.
type errDenied struct{ status string }

func (e errDenied) Error() string { return "denied: " + e.status }

// dial is net.Dialer.Dial with a deadline over the connection's whole life.
func dial(network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: patience}).Dial(network, addr)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(3 * patience))
}

// connect opens a tunnel to target through the explicit door at addr. token may
// be empty.
func connect(addr, target, token string) (*tunnel, error) {
	c, err := dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return connectOver(c, target, token)
}

// connectOver asks for a tunnel on c, which it closes when there is none.
func connectOver(c net.Conn, target, token string) (*tunnel, error) {
	auth := ""
	if token != "" {
		auth = "Proxy-Authorization: Basic " + basic(token) + "\r\n"
	}
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, target, auth)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		c.Close()
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		c.Close()
		return nil, errDenied{resp.Status}
	}
	return &tunnel{c, r}, nil
}

// ping sends one line and wants it back.
func (c *tunnel) ping() error {
	if _, err := io.WriteString(c, "ping\n"); err != nil {
		return err
	}
	line, err := c.r.ReadString('\n')
	if err == nil && line != "ping\n" {
		err = fmt.Errorf("got %q", line)
	}
	return err
}

// closedWithin reports how long the tunnel lived on, up to limit.
func (c *tunnel) closedWithin(limit time.Duration) (time.Duration, bool) {
	begin := time.Now()
	_ = c.SetReadDeadline(begin.Add(limit))
	_, err := c.r.ReadByte()
	return time.Since(begin), err != nil && !asTimeout(err)
}

func asTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// write writes a file below the test's directory and reports its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// policyFor is a policy that allows name at each port, on the loopback.
func policyFor(name string, ports ...string) string {
	text := "hosts:\n  " + name + ": 127.0.0.1\nallow:\n"
	for _, p := range ports {
		text += "  - " + name + ":" + p + "\n"
	}
	return text
}

// get asks the admin address.
func get(t *testing.T, addr, path string) (code int, body string) {
	t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// eventually waits until ok, for what nobody tells.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func newTunnel(c net.Conn) *tunnel { return &tunnel{c, bufio.NewReader(c)} }
