//go:build system

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const corePattern = "/proc/sys/kernel/core_pattern"

// TestCoreHelper lets programs crash on a machine whose kernel starts a helper for
// core files, as most distributions' do: nothing inside starts it.
func TestCoreHelper(t *testing.T) {
	before, err := os.ReadFile(corePattern)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/var/lib", "core-helper") // seen by the helper, which runs outside
	if err != nil {
		t.Skipf("only root sets the helper: %v", err)
	}
	defer os.RemoveAll(dir)
	marks := filepath.Join(dir, "marks")
	helper := filepath.Join(dir, "helper")
	if err := os.WriteFile(helper, []byte("#!/bin/sh\ncat >/dev/null\necho \"$1\" >>"+marks+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.WriteFile(corePattern, before, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(corePattern, []byte("|"+helper+" %e"), 0); err != nil {
		t.Skipf("the helper cannot be set here: %v", err)
	}
	crash := func(name string) string { // under a name of its own
		return "ulimit -c 0; ulimit -Hc 0; cp /bin/sh " + name + "; ./" + name + " -c 'kill -SEGV $$'"
	}
	sh(t, &Backend{}, "cd /tmp; "+crash("inside1"))
	sh(t, without("core", "seccomp"), "cd /tmp; "+crash("attack1"))
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", crash("outside1"))
	cmd.Dir = dir
	_ = cmd.Run() // it crashes
	var told string
	for end := time.Now().Add(10 * time.Second); !strings.Contains(told, "outside1") || !strings.Contains(told, "attack1"); {
		if time.Now().After(end) {
			t.Fatalf("the helper saw %q: this test shows nothing", told)
		}
		data, _ := os.ReadFile(marks)
		told = string(data)
	}
	if strings.Contains(told, "inside1") {
		t.Errorf("a crash inside started the helper: %q", told)
	}
}
