//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"egressd/sandbox"
	"egressd/sandbox/hermetic"
	"egressd/sandbox/hermetic/control"
	"egressd/sandbox/process"
	"egressd/sandbox/vercel/fake/machine"
)

// TestMain turns the test binary into launch, for the scripts, and into a worker
// of the hermetic tier, for launch.
func TestMain(m *testing.M) {
	if machine.Agent(os.Args) {
		return // of a sandbox of the API's double
	}
	testscript.Main(m, map[string]func(){"launch": main, control.Name: main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
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
