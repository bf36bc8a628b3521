//go:build system

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestAsOrdinaryUser runs every test of this package again without privileges.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: every test runs as an ordinary user already")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("no setpriv to become an ordinary user with")
	}
	dir, err := os.MkdirTemp("", "process-user")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "process.test")
	if err := os.WriteFile(binary, data, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"--reuid=65534", "--regid=65534", "--clear-groups", binary, "-test.timeout=300s"}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(t.Context(), setpriv, args...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=/tmp"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("as an ordinary user:\n%s", out)
	}
}
