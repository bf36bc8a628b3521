package process

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCoreLimit looks at the size of core files at which the kernel starts no helper,
// and tries to lower it to one at which it would.
func TestCoreLimit(t *testing.T) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &r); err != nil {
		t.Fatal(err)
	}
	if r.Max == 0 {
		t.Skip("the hard limit of core files is 0 here: it cannot become 1")
	}
	const script = "ulimit -c 0; ulimit -Hc 0; grep '^Max core' /proc/self/limits"
	if res := sh(t, &Backend{}, script); strings.Join(strings.Fields(res.out), " ") != "Max core file size 1 1 bytes" {
		t.Errorf("inside: %s", res.out)
	}
	if res := sh(t, without("seccomp"), script); strings.Join(strings.Fields(res.out), " ") != "Max core file size 0 0 bytes" {
		t.Errorf("without the filter: %s", res.out)
	}
}
