//go:build linux

package process

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/gate"
	"egressd/policy"
	"egressd/sandbox"
	"egressd/test/nohup"
)

// The test binary is three programs more: the init, the attacker inside
// (attack NAME ARGS…) and a launcher that can be killed (launch JSON).
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "attack" {
		os.Exit(attackMain(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "launch" {
		os.Exit(launchMain(os.Args[2:]))
	}
	nohup.Undo()
	os.Exit(m.Run())
}

// launchMain is a small launcher: no policy, the command as it stands.
func launchMain(args []string) int {
	flags := flag.NewFlagSet("launch", flag.ExitOnError)
	skip := flags.String("skip", "", "a layer to leave out")
	limit := flags.Duration("timeout", 0, "")
	question := flags.Bool("ask", false, "on SIGIO, ask for a line as launch --approve does")
	if flags.Parse(args) != nil {
		return 2
	}
	b := &Backend{Gate: gate.Config{Policy: new(policy.Current), Events: new(recorder)}}
	if *skip != "" {
		b.hooks.skip = map[string]bool{*skip: true}
	}
	if *question {
		go ask(b)
	}
	dir, _ := os.Getwd()
	res, err := b.Run(context.Background(), sandbox.Spec{
		Argv: flags.Args(), Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "TERM=xterm", "PS1=ready> "}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Timeout: *limit, Grace: time.Second,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return res.ExitCode
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []eventtest.Line
}

func (r *recorder) Emit(e event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, eventtest.Of(e))
	return nil
}

func (r *recorder) find(f func(eventtest.Line) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if f(e) {
			return true
		}
	}
	return false
}

// compile makes a policy from allow rules and hosts entries.
func compile(t *testing.T, allow, hosts []string) *policy.Current {
	t.Helper()
	doc := new(policy.Document)
	for i, text := range allow {
		doc.Allow = append(doc.Allow, policy.Entry{Text: text, Pos: policy.Pos{File: "--allow", Line: i + 1}})
	}
	for i, text := range hosts {
		doc.Hosts = append(doc.Hosts, policy.Entry{Text: text, Pos: policy.Pos{File: "--host", Line: i + 1}})
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	c := new(policy.Current)
	c.Store(p)
	return c
}

// canRun is the error of the simplest run on this machine.
var canRun = sync.OnceValue(func() error {
	_, err := (&Backend{}).Run(context.Background(), sandbox.Spec{Argv: []string{"/bin/true"}, Dir: "/"})
	return err
})

// needNamespaces skips where the kernel or a container forbids namespaces.
func needNamespaces(t *testing.T) {
	t.Helper()
	if err := canRun(); err != nil {
		t.Skipf("this machine can't run the tier: %v", err)
	}
}

// result is a run with what it wrote.
type result struct {
	sandbox.Result
	out string
	err error
}

// run runs argv in b with a deadline, and collects what it writes.
func run(t *testing.T, b *Backend, spec sandbox.Spec) result {
	t.Helper()
	needNamespaces(t)
	if b.Gate.Events == nil {
		b.Gate.Events = new(recorder)
	}
	if b.Gate.Policy == nil {
		b.Gate.Policy = new(policy.Current)
	}
	if spec.Env == nil {
		spec.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent"}
	}
	if spec.Dir == "" {
		spec.Dir = "/"
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	spec.Stdout, spec.Stderr = w, w
	var buf bytes.Buffer
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		io.Copy(&buf, r)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var res result
	res.Result, res.err = b.Run(ctx, spec)
	w.Close()
	<-copied // ends only when nobody inside holds the pipe any more
	r.Close()
	res.out = buf.String()
	return res
}

// sh runs a shell script in b.
func sh(t *testing.T, b *Backend, script string) result {
	t.Helper()
	return run(t, b, sandbox.Spec{Argv: []string{"/bin/sh", "-c", script}})
}

// self is the test binary, which the inside may execute.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// attack runs one attack of attacks_test.go inside b, and reports whether it
// succeeded and what it said.
func attack(t *testing.T, b *Backend, spec sandbox.Spec, name string, args ...string) (bool, string) {
	t.Helper()
	spec.Argv = append([]string{self(t), "attack", name}, args...)
	res := run(t, b, spec)
	if res.err != nil {
		t.Fatalf("attack %s: %v", name, res.err)
	}
	switch res.ExitCode {
	case attackSucceeded:
		return true, res.out
	case attackStopped:
		return false, res.out
	}
	t.Fatalf("attack %s: exit %d: %s", name, res.ExitCode, res.out)
	return false, ""
}

// attackOutside runs an attack without a sandbox: it must succeed there, or the
// test shows nothing.
func attackOutside(t *testing.T, name string, args ...string) (bool, string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), self(t), append([]string{"attack", name}, args...)...).CombinedOutput()
	return err == nil, string(out)
}

// without is a backend that leaves layers out.
func without(layers ...string) *Backend {
	b := &Backend{hooks: testHooks{skip: map[string]bool{}}}
	for _, w := range layers {
		b.hooks.skip[w] = true
	}
	return b
}
