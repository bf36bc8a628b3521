//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"egressd/sandbox"
	"egressd/sandbox/hermetic"
	"egressd/sandbox/hermetic/control"
	"egressd/sandbox/process"
	"egressd/sandbox/vercel/fake/machine"
	"egressd/test/nohup"
)

// TestMain turns the test binary into launch and into programs of the scripts,
// and into a worker of the hermetic tier, for launch.
func TestMain(m *testing.M) {
	if machine.Agent(os.Args) {
		return // of a sandbox of the API's double
	}
	testscript.Main(tests{m}, map[string]func(){"launch": main, control.Name: main, "double": doubleProgram, "question": question})
}

// tests are the tests, without the signals that launch would ignore as well.
type tests struct{ *testing.M }

// Run implements testscript.TestingM.
func (m tests) Run() int {
	nohup.Undo()
	return m.M.Run()
}

// The scripts send signals, and end whatever ignores them where the tests are
// started: nohup, the background of a script, some CI systems.
func TestStartedIgnoring(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `trap "" HUP INT; exec "$@"`, "sh", self, "-test.run=^TestScripts$/^nohup$", "-test.timeout=120s")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestScripts(t *testing.T) { runScripts(t, "testdata") }

func runScripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		// Private inside: the sandbox hides the system's directory for temporary
		// files, but carries the working directory in.
		Condition: func(cond string) (bool, error) {
			return cond == "netns" && netnsWorks(t) || cond == "hermetic" && hermetic.Walls() == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"rc":     exitCode,
			"mode":   mode,
			"lines":  lines,
			"killed": killed,
		},
	})
}

// netnsWorks tries the netns tier once for the whole run.
func netnsWorks(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	dir := t.TempDir()
	_, err := new(process.Backend).Run(ctx, sandbox.Spec{Argv: []string{"/bin/true"}, Dir: filepath.Dir(dir), Env: []string{"PATH=/bin:/usr/bin"}})
	if err != nil {
		t.Logf("netns scripts are skipped: %v", err)
	}
	return err == nil
}
