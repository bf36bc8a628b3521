package process

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"egressd/sandbox"
	"egressd/sandbox/process/spawn"
)

// An init that was started ahead is used when it fits, and gone either way.
func TestEarly(t *testing.T) {
	needNamespaces(t)
	hidden := filepath.Join(tempDir(t, "/tmp"), "shm")
	if err := os.Symlink(tempDir(t, "/dev/shm"), hidden); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		fits bool
		mode string // of the capture
		spec sandbox.Spec
	}{
		"the same files":       {fits: true, spec: sandbox.Spec{Argv: []string{"/bin/true"}}},
		"files of its own":     {spec: sandbox.Spec{Argv: []string{"/bin/true"}}},
		"another mode":         {fits: true, mode: "anyip", spec: sandbox.Spec{Argv: []string{"/bin/true"}}},
		"a link to the hidden": {fits: true, spec: sandbox.Spec{Argv: []string{"/usr/bin/test", "-d", hidden}}},
		"nothing to run":       {fits: true},
	} {
		b := &Backend{CaptureMode: c.mode, Early: spawn.Ahead()}
		c.spec.Dir = "/"
		if c.fits {
			c.spec.Stdin, c.spec.Stdout, c.spec.Stderr = os.Stdin, os.Stdout, os.Stderr
		}
		res, err := b.Run(context.Background(), c.spec)
		if ran := len(c.spec.Argv) > 0; ran && (err != nil || res.ExitCode != 0) || !ran && err == nil {
			t.Errorf("%s: exit %d, %v", name, res.ExitCode, err)
		}
		if _, err := b.Early.Take(); err != spawn.ErrTaken {
			t.Errorf("%s: the early init is still there: %v", name, err)
		}
	}
}
