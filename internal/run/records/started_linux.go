package records

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// StartedAt reports when a process of this machine started, in a word that no other
// process of that number has: the kernel's boot and its clock ticks since.
func StartedAt(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	// The name, in parentheses, may hold anything; starttime is field 22 (proc_pid_stat(5)).
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return "", errors.New("/proc: a line is short")
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[19], nil
}
