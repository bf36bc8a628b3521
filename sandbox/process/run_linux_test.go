package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/sandbox"
	"egressd/sandbox/process/control"
)

func TestExitCodes(t *testing.T) {
	dir := tempDir(t, "/tmp")
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("echo hi\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("echo \"script $1\"; exit 9\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		argv []string
		code int
		out  string
	}{
		{"success", []string{"true"}, 0, ""},
		{"its own", []string{"/bin/sh", "-c", "exit 42"}, 42, ""},
		{"a signal", []string{"/bin/sh", "-c", "kill -TERM $$"}, 128 + 15, ""},
		{"a kill", []string{"/bin/sh", "-c", "kill -KILL $$"}, 128 + 9, ""},
		{"not found", []string{"no-such-program"}, 127, "launch: no-such-program: command not found\n"},
		{"no such path", []string{"/no/such/program"}, 127, "no such file or directory"},
		{"a directory", []string{"/usr"}, 126, "is a directory"},
		{"not executable", []string{plain}, 126, "permission denied"},
		{"script without #!", []string{script, "arg"}, 9, "script arg\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := run(t, &Backend{}, sandbox.Spec{Argv: tt.argv})
			if res.err != nil || res.ExitCode != tt.code || !strings.Contains(res.out, tt.out) {
				t.Errorf("exit %d, %v, %q; want %d, %q", res.ExitCode, res.err, res.out, tt.code, tt.out)
			}
		})
	}
}

func TestScript(t *testing.T) {
	res := run(t, &Backend{}, sandbox.Spec{Script: `echo "${BASH_VERSION:+bash}"; exit 4`, Shell: "bash"})
	if res.ExitCode != 4 || res.out != "bash\n" {
		t.Errorf("exit %d, %v, %q", res.ExitCode, res.err, res.out)
	}
	for _, spec := range []sandbox.Spec{{}, {Script: "x", Argv: []string{"y"}}, {Script: "x", Shell: "fish"}, {Argv: []string{""}}} {
		var ce *sandbox.CapabilityError
		if err := (&Backend{}).Supports(spec); !errors.As(err, &ce) {
			t.Errorf("Supports(%+v) = %v, want a CapabilityError", spec, err)
		}
	}
}

func TestTimeout(t *testing.T) {
	marker := fmt.Sprintf("85%d", os.Getpid())
	start := time.Now()
	res := run(t, &Backend{}, sandbox.Spec{
		Argv:    []string{"/bin/sh", "-c", `trap "" TERM; (trap "" TERM; setsid sleep ` + marker + ` &); while :; do sleep 1; done`},
		Timeout: 200 * time.Millisecond, Grace: 200 * time.Millisecond,
	})
	if res.ExitCode != 124 || !res.TimedOut || res.err != nil {
		t.Errorf("exit %d, timed out %v, %v", res.ExitCode, res.TimedOut, res.err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
	if findProcess(marker) == nil {
		t.Error("a process of the run is still there")
	}
	// A program that ends in time on SIGTERM still exits 124.
	res = run(t, &Backend{}, sandbox.Spec{
		Argv:    []string{"/bin/sh", "-c", `trap "echo cleaned; exit 3" TERM; sleep 20 & wait`},
		Timeout: 200 * time.Millisecond, Grace: 10 * time.Second,
	})
	if res.ExitCode != 124 || res.out != "cleaned\n" {
		t.Errorf("exit %d, %q", res.ExitCode, res.out)
	}
}

func TestCancel(t *testing.T) {
	needNamespaces(t)
	r, w, _ := os.Pipe()
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		r.Read(make([]byte, 2))
		cancel()
	}()
	res, err := (&Backend{}).Run(ctx, sandbox.Spec{Argv: []string{"/bin/sh", "-c", "trap 'exit 5' TERM; echo up; sleep 30 & wait"}, Dir: "/", Env: []string{"PATH=/bin:/usr/bin"}, Stdout: w})
	w.Close()
	if err != nil || res.ExitCode != 5 {
		t.Errorf("exit %d, %v", res.ExitCode, err)
	}
}

// TestNothingStays checks that runs leave no descriptor and no goroutine.
func TestNothingStays(t *testing.T) {
	needNamespaces(t)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	sh(t, &Backend{}, "exit 0")
	before := count()
	for range 5 {
		sh(t, &Backend{}, "exit 0")
		run(t, &Backend{}, sandbox.Spec{Argv: []string{"no-such-program"}})
		(&Backend{CaptureMode: "no such mode"}).Run(t.Context(), sandbox.Spec{Argv: []string{"true"}, Dir: "/"})
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestSetUpFails(t *testing.T) {
	needNamespaces(t)
	marker := fmt.Sprintf("84%d", os.Getpid())
	res, err := (&Backend{CaptureMode: "no such mode"}).Run(t.Context(), sandbox.Spec{Argv: []string{"sleep", marker}, Dir: "/"})
	if err == nil || res.ExitCode != 125 {
		t.Errorf("exit %d, %v", res.ExitCode, err)
	}
	if findProcess(marker) == nil {
		t.Error("the program ran without its layers")
	}
}

// What somebody removes while a run starts is told as that, once.
func TestRemovedMeanwhile(t *testing.T) {
	err := setUpError(&control.FailReport{Step: "mounts", Err: "hidden: lstat /home/a/x: no such file or directory", Errno: syscall.ENOENT})
	want := "sandbox set-up failed at mounts: hidden: lstat /home/a/x: no such file or directory: it was there when the run began to start, " +
		"and was removed on this machine since: start it again"
	if err.Error() != want || !errors.Is(err, syscall.ENOENT) {
		t.Errorf("got %q, want %q", err, want)
	}
}
