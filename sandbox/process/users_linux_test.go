package process

import (
	"os"
	"testing"

	"egressd/sandbox"
)

// TestWithoutUserNamespace is root in a container that may not make user
// namespaces: the other layers stand all the same.
func TestWithoutUserNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make the other namespaces without one")
	}
	b := func() *Backend { return &Backend{hooks: testHooks{noUserNS: true}} }
	res := sh(t, b(), "id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; exit 3")
	want := "0\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n"
	if res.out != want || res.ExitCode != 3 {
		t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	for _, a := range [][]string{
		{"write-open", "/proc/sys/kernel/core_pattern"},
		{"mount"},
		{"read", "/proc/1/environ"},
		{"readlink", "/proc/1/fd/0"},
		{"netlink-route"},
		{"clone-userns"},
		{"ptrace", "1"},
		{"write-open", "/sys/kernel/uevent_helper"},
		{"setns", "/proc/1/ns/net"},
	} {
		if ok, out := attack(t, b(), sandbox.Spec{}, a[0], a[1:]...); ok {
			t.Errorf("%v worked: %s", a, out)
		}
	}
}

// TestRunAs is root that hands the run to an ordinary user, as behind sudo.
func TestRunAs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	for _, noUserNS := range []bool{false, true} {
		b := &Backend{hooks: testHooks{noUserNS: noUserNS}}
		res := run(t, b, sandbox.Spec{
			Argv:  []string{"/bin/sh", "-c", "id -u; id -g; id -G; grep CapEff /proc/self/status; test -w /etc/passwd || echo read-only"},
			RunAs: &sandbox.Cred{UID: 65534, GID: 65533, Groups: []uint32{65532}},
		})
		if want := "65534\n65533\n65533 65532\nCapEff:\t0000000000000000\nread-only\n"; res.out != want || res.err != nil {
			t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
		}
	}
}
