//go:build linux

package hermetic

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/hermetic/limits"
	"egressd/sandbox"
)

// A script that does not end is ended when its time is up, wherever it is, and
// what it has said stays.
func TestTimeout(t *testing.T) {
	for _, command := range []string{"pause", "spin", "deaf"} {
		o := run(t, &Backend{}, sandbox.Spec{Script: "echo before\n" + command + "\necho after", Timeout: 300 * time.Millisecond})
		if o.code != 124 || !o.timedOut || o.out != "before\n" || o.failure != nil {
			t.Errorf("%s: %+v", command, o)
		}
	}
}

// When ctx ends, so does the run, at once.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	res, err := new(Backend).Run(ctx, sandbox.Spec{Script: "spin", Dir: t.TempDir()})
	if err != nil || res.ExitCode != 137 {
		t.Errorf("%+v, %v", res, err)
	}
}

// The end of the worker is a result with a reason, and what the Go runtime says
// of it is not the person's to read.
func TestCrashes(t *testing.T) {
	for _, tt := range []struct {
		how  string
		code int
		note string
	}{
		{"stack", 126, "nests too deep"},
		{"memory", 126, "--limit memory=N"},
		{"panic", 126, "report it"},
		{"x32", 159, "a bug or an attack"},
		{"time", 126, "processor time"},
	} {
		var trace bytes.Buffer
		b := &Backend{Trace: &trace}
		if tt.how == "time" {
			b.hooks.cpu = 1
		}
		if raceEnabled && tt.how == "memory" {
			continue // the race detector's own memory leaves no limit to meet
		}
		o := run(t, b, sandbox.Spec{Script: "echo before\nbomb " + tt.how + "\necho after"})
		if o.code != tt.code || o.failure != nil || o.out != "before\n" || o.err != "" || !strings.Contains(o.note(), tt.note) || len(o.notes) != 1 {
			t.Errorf("%s: %+v", tt.how, o)
		}
		if tt.how == "panic" && !strings.Contains(trace.String(), "from a probe") {
			t.Errorf("the trace lacks the reason: %s", trace.String())
		}
	}
}

// Memory that grows step by step is stopped by the interpreter itself.
func TestMemory(t *testing.T) {
	o := run(t, &Backend{Limits: limits.Limits{Memory: 64 << 20}}, sandbox.Spec{Script: "grow"})
	if o.code != 126 || !strings.Contains(o.note(), "limit memory=N") {
		t.Errorf("%+v", o)
	}
}

// Output is bounded, also where a command ignores what its writes report.
func TestOutput(t *testing.T) {
	o := run(t, &Backend{Limits: limits.Limits{Output: 1000}}, sandbox.Spec{Script: "chatter", Timeout: 20 * time.Second})
	if o.code != 126 || !strings.Contains(o.note(), "--limit output=N") || len(o.out) > 1000 {
		t.Errorf("%d %s: %d bytes", o.code, o.note(), len(o.out))
	}
}

// A reader that goes away ends the run quietly, as SIGPIPE does.
func TestClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	res, err := new(Backend).Run(t.Context(), sandbox.Spec{Script: "chatter", Dir: t.TempDir(), Stdout: w, Timeout: 20 * time.Second})
	if err != nil || res.ExitCode != 141 {
		t.Errorf("%+v, %v", res, err)
	}
}

// What both outputs say stays in order when they are one file.
func TestInterleaved(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "both"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	res, err := new(Backend).Run(t.Context(), sandbox.Spec{Script: "both", Dir: t.TempDir(), Stdout: f, Stderr: f})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	got, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("out\nerr\n", 100); string(got) != want {
		t.Errorf("%q", got)
	}
}

// Hundreds of runs, many at a time, leave nothing behind.
func TestNothingIsLeft(t *testing.T) {
	const atATime, each = 50, 4
	dir := t.TempDir()
	one := func() error {
		res, err := new(Backend).Run(context.Background(), sandbox.Spec{Script: "exit 7", Dir: dir})
		if err != nil || res.ExitCode != 7 {
			return fmt.Errorf("%+v, %w", res, err)
		}
		return nil
	}
	if err := Walls(); err != nil {
		t.Skip(err)
	}
	if err := one(); err != nil {
		t.Fatal(err)
	}
	before, goroutines := descriptorsHere(t), runtime.NumGoroutine()
	var wg sync.WaitGroup
	for range atATime {
		wg.Go(func() {
			for range each {
				if err := one(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if after := descriptorsHere(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	// The goroutine that waits for a worker says so before it ends.
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
			break
		}
	}
	if left := children(t); left != "" {
		t.Errorf("processes are left: %s", left)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("in the workspace: %v, %v", left, err)
	}
}

func descriptorsHere(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func children(t *testing.T) string {
	t.Helper()
	var all string
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(os.Getpid()) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tasks {
		text, _ := os.ReadFile(path) // the thread may be gone
		all += string(text)
	}
	return all
}
