//go:build system

package docs

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const awaitTimeout = 30 * time.Second

// runAwait waits until somebody listens who did not before, which is what a
// reader sees by looking, or the process args[0] has ended. What listened
// before is read from the standard input; without args it prints that.
func runAwait(args []string) int {
	if len(args) == 0 {
		for socket := range listening() {
			fmt.Println(socket)
		}
		return 0
	}
	data, err := io.ReadAll(os.Stdin)
	pid, nerr := strconv.Atoi(args[0])
	if err != nil || nerr != nil {
		fmt.Println("await:", err, nerr)
		return 1
	}
	before := map[string]bool{}
	for _, socket := range strings.Fields(string(data)) {
		before[socket] = true
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(awaitTimeout); time.Now().Before(end); <-tick.C {
		if ended(pid) {
			fmt.Println("[the command in the background has ended]")
			return 1
		}
		for socket := range listening() {
			if !before[socket] {
				return 0
			}
		}
	}
	fmt.Printf("[the command in the background does not listen anywhere after %v]\n", awaitTimeout)
	return 1
}

// ended reports whether a process is gone, or dead and not yet waited for.
func ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == syscall.ESRCH
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return len(f) == 0 || f[0] == "Z"
}

// listening lists the listening sockets of this network namespace by inode. Who
// holds them is not always to be seen: the daemon hides its descriptors.
func listening() map[string]bool {
	out := map[string]bool{}
	for _, t := range []struct {
		file         string
		state, inode int
		listening    string
	}{{"tcp", 3, 9, "0A"}, {"tcp6", 3, 9, "0A"}, {"unix", 3, 6, "00010000"}} {
		data, err := os.ReadFile("/proc/self/net/" + t.file)
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(data)) {
			if w := strings.Fields(line); len(w) > t.inode && w[t.state] == t.listening {
				out[w[t.inode]] = true
			}
		}
	}
	return out
}
