//go:build system

package process

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"egressd/sandbox"
)

// TestBwrap runs the real bwrap inside, with the flags of Claude Code's own sandbox.
func TestBwrap(t *testing.T) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("no bwrap (Debian: bubblewrap)")
	}
	spec := sandbox.Spec{Argv: []string{
		bwrap, "--new-session", "--die-with-parent", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/",
		"--dev", "/dev", "--proc", "/proc", "/bin/sh", "-c", "echo pid $$; (echo x >/proc/sys/kernel/core_pattern) 2>/dev/null || echo kept",
	}}
	if os.Geteuid() == 0 {
		spec.RunAs = &sandbox.Cred{UID: 65534, GID: 65534}
	}
	if res := run(t, &Backend{Nested: true}, spec); res.ExitCode != 0 || !strings.HasPrefix(res.out, "pid ") || !strings.HasSuffix(res.out, "\nkept\n") {
		t.Errorf("exit %d, %q, %v", res.ExitCode, res.out, res.err)
	}
	if res := run(t, &Backend{}, spec); res.ExitCode == 0 {
		t.Errorf("without Nested it ran: %q", res.out)
	}
}
