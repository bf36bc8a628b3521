//go:build system

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

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
	path := []string{filepath.Join(dir, "bin"), filepath.Join(filepath.Dir(dir), "bin"), filepath.Join(filepath.Dir(dir), "tools")}
	if goroot := os.Getenv("GOROOT"); goroot != "" {
		path = append(path, filepath.Join(goroot, "bin"))
	}
	path = append(path, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
	who := "root"
	if os.Geteuid() != 0 {
		who = "reader"
	}
	return []string{
		"HOME=" + filepath.Join(dir, "home"), "USER=" + who, "LOGNAME=" + who, "SHELL=/bin/bash", "LANG=C.UTF-8", "TERM=dumb",
		"TMPDIR=" + filepath.Join(dir, "tmp"), "PATH=" + strings.Join(path, ":"),
		"GOCACHE=" + os.Getenv("GOCACHE"), "GOMODCACHE=" + os.Getenv("GOMODCACHE"), "GOFLAGS=-buildvcs=false", "GOPROXY=off",
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
