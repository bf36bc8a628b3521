package records

import (
	"os"
	"strings"

	"egressd/internal/linux/procstat"
)

// StartedAt reports when a process of this machine started, in a word that no other
// process of that number has: the kernel's boot and its clock ticks since.
func StartedAt(pid int) (string, error) {
	p, err := procstat.Read(pid)
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + p.Started, nil
}
