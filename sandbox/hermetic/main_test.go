//go:build linux

package hermetic

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/sandbox"
	"egressd/sandbox/hermetic/inside"
)

// TestMain turns the test binary into a worker where it was started as one.
func TestMain(m *testing.M) {
	if inside.IsWorker(os.Args) {
		os.Exit(inside.Run(probes()))
	}
	os.Exit(elsewhere(m))
}

// elsewhere runs the tests in an empty directory, so that the directories that
// they make are not below the working directory, which would be the workspace.
func elsewhere(m *testing.M) int {
	dir, err := os.MkdirTemp("", "egressd-hermetic-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chdir(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// outcome is how a run ended and what it said.
type outcome struct {
	code     int
	timedOut bool
	out, err string
	notes    []string
	changes  []Change
	failure  error
}

// run runs spec in a workspace of its own unless it names one.
func run(t *testing.T, b *Backend, spec sandbox.Spec) outcome {
	t.Helper()
	if err := Walls(); err != nil {
		t.Skip(err)
	}
	if spec.Dir == "" {
		spec.Dir = t.TempDir()
	}
	scratch := t.TempDir()
	files := map[string]**os.File{"out": &spec.Stdout, "err": &spec.Stderr}
	for name, f := range files {
		var err error
		if *f, err = os.OpenFile(filepath.Join(scratch, name), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			t.Fatal(err)
		}
		defer (*f).Close()
	}
	var o outcome
	spec.Notes = func(line string) { o.notes = append(o.notes, line) }
	b.Changed = func(list []Change, _ int) { o.changes = list }
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	res, err := b.Run(ctx, spec)
	o.code, o.timedOut, o.failure = res.ExitCode, res.TimedOut, err
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(scratch, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	o.out, o.err = read("out"), read("err")
	return o
}

func (o outcome) note() string { return strings.Join(o.notes, "\n") }
