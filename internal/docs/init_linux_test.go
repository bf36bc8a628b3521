package docs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runInit is a world's first process: it gives the world its own /proc, starts
// the shell and reaps what nobody else does. args are how to start, the world's
// directory and the shell's working directory.
func runInit(args []string) int {
	dir, work := args[1], args[2]
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
		return 1
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		fmt.Fprintln(os.Stderr, "init: mount /proc:", err)
		return 1
	}
	if args[0] == systemdWorld {
		fmt.Fprintln(os.Stderr, "init: systemd:", bootSystemd())
		return 1
	}
	shell, err := syscall.ForkExec(filepath.Join(dir, "bin", bareRole), append([]string{bareRole}, "bash", "--norc", "--noprofile"), &syscall.ProcAttr{
		Dir: work, Env: shellEnviron(dir), Files: []uintptr{0, 1, 2, 3}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
		return 1
	}
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			fmt.Fprintln(os.Stderr, "init: wait:", err)
			return 1
		case pid == shell:
			return ws.ExitStatus()
		}
	}
}

// shellEnviron is what a reader's shell has.
func shellEnviron(dir string) []string {
	who := "root"
	if os.Geteuid() != 0 {
		who = "reader"
	}
	return []string{
		"HOME=" + filepath.Join(dir, "home"), "USER=" + who, "LOGNAME=" + who, "SHELL=/bin/bash", "LANG=C.UTF-8", "TERM=dumb",
		"TMPDIR=" + filepath.Join(dir, "tmp"), "PATH=" + strings.Join([]string{
			filepath.Join(dir, "bin"), filepath.Join(filepath.Dir(dir), "bin"), filepath.Join(filepath.Dir(dir), "tools"), filepath.Join(runtime.GOROOT(), "bin"),
			"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
		}, ":"),
		"GOCACHE=" + os.Getenv("GOCACHE"), "GOMODCACHE=" + os.Getenv("GOMODCACHE"), "GOFLAGS=-mod=mod -buildvcs=false", "GOPROXY=off",
	}
}

// runBare becomes a program without the capabilities that building the world
// took: a person who types commands has none.
func runBare(argv []string) int {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "bare:", unix.Exec("/bin/"+argv[0], argv, os.Environ()))
	return 1
}

const awaitTimeout = 10 * time.Second

// runAwait waits until the process args[0], or one below it, listens: what a
// reader does by looking. It fails when the process ends first.
func runAwait(args []string) int {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(awaitTimeout); time.Now().Before(end); <-tick.C {
		pids := family(args[0])
		if len(pids) == 0 {
			fmt.Printf("[the command in the background has ended]\n")
			return 1
		}
		for _, pid := range pids {
			if listens(pid) {
				return 0
			}
		}
	}
	fmt.Printf("[the command in the background does not listen anywhere after %v]\n", awaitTimeout)
	return 1
}

// family lists the process and what it started, dead ones left out.
func family(root string) []string {
	parents := map[string][]string{}
	alive := map[string]bool{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // state, ppid
		if len(f) < 2 || f[0] == "Z" {
			continue
		}
		alive[e.Name()] = true
		parents[f[1]] = append(parents[f[1]], e.Name())
	}
	if !alive[root] {
		return nil
	}
	out := []string{root}
	for i := 0; i < len(out); i++ {
		out = append(out, parents[out[i]]...)
	}
	return out
}

// listens reports whether the process has a listening socket.
func listens(pid string) bool {
	open := map[string]bool{}
	for _, t := range []struct {
		file         string
		state, inode int
		listening    string
	}{{"tcp", 3, 9, "0A"}, {"tcp6", 3, 9, "0A"}, {"unix", 3, 6, "00010000"}} {
		f, err := os.Open("/proc/" + pid + "/net/" + t.file)
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if w := strings.Fields(lines.Text()); len(w) > t.inode && w[t.state] == t.listening {
				open["socket:["+w[t.inode]+"]"] = true
			}
		}
		_ = f.Close() // read only
	}
	fds, _ := filepath.Glob("/proc/" + pid + "/fd/*") // the pattern is well-formed
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && open[to] {
			return true
		}
	}
	return false
}
