package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	sysctl   = "/proc/sys/kernel/printk_ratelimit_burst" // harmless, and the machine's own
	planted  = "17"
	bombSize = 3000
	megabyte = 1 << 20
)

func keepSysctl(a *attempt) error {
	data, err := os.ReadFile(sysctl)
	a.atEnd(func() { a.fail(os.WriteFile(sysctl, data, 0)) })
	return err
}

func changedSysctl(*attempt) bool {
	data, err := os.ReadFile(sysctl)
	return err == nil && strings.TrimSpace(string(data)) == planted
}

func processes() []attack {
	const group = "processes, bombs"
	list := []attack{
		{name: "ptrace of a process outside", setup: victim, script: "{A} ptrace {PID}", check: leaks},
		{name: "reading a process's memory", setup: victim, script: "{A} memory-of {PID}", check: leaks},
		{name: "environment of processes outside", setup: victim, script: "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep VICTIM", check: leaks},
		{name: "killing a process outside", setup: victim, script: "kill -9 {PID}; sleep 0.2", check: func(a *attempt) bool { return !alive(a.pid) }},
		{
			name:   "a survivor that left the session",
			script: "setsid sh -c 'trap \"\" HUP TERM; : {MARK}; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 2; done' >/dev/null 2>&1 </dev/null & sleep 0.3",
			check:  func(a *attempt) bool { return running(a.mark) > 0 },
		},
		{
			name:   "a fork bomb of 3,000",
			script: "i=0; while [ $i -lt 3000 ]; do sleep 60.{NUMBER} & i=$((i+1)); done; echo READY; sleep 3",
			during: func(a *attempt) { a.outside = running("60."+a.number) > bombSize*9/10 },
			check:  seen,
		},
		{
			name: "1 GiB of memory", script: "{A} grow 1024", during: func(a *attempt) { a.outside = largest() > 1000*megabyte }, check: seen,
			documented: "private directories hold half of the memory together; more only as `--limit` says",
		},
		{name: "a large file in the workspace (256 MB)", script: "head -c 256000000 /dev/zero > big", check: func(a *attempt) bool {
			info, err := os.Stat(filepath.Join(a.ws, "big"))
			return err == nil && info.Size() == 256000000
		}, documented: "memory, processor time, descriptors, large files"},
	}
	for i := range list {
		list[i].group = group
	}
	return list
}

// victim starts a process of the same user outside that has a decoy in its environment.
func victim(a *attempt) error {
	cmd := exec.CommandContext(a.ctx, "/bin/sleep", "60")
	cmd.Env = []string{"VICTIM=" + a.canary}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential()}
	if err := cmd.Start(); err != nil {
		return err
	}
	a.pid = cmd.Process.Pid
	a.atEnd(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have been killed: that is an attack
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	return nil
}

// alive reports whether a child of ours runs; a zombie does not.
func alive(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, found := bytes.Cut(data, []byte(") "))
	return err == nil && found && state[0] != 'Z'
}

// running counts processes of this machine, in whatever namespace, with text in their command line.
func running(text string) int {
	n := 0
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // its one error is a bad pattern
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && bytes.Contains(data, []byte(text)) {
			n++
		}
	}
	return n
}

// largest is the resident memory of the largest process named as the attacker is, in bytes.
func largest() int {
	most := 0
	files, _ := filepath.Glob("/proc/[0-9]*/statm") // its one error is a bad pattern
	for _, f := range files {
		name, err := os.ReadFile(filepath.Join(filepath.Dir(f), "comm"))
		if err != nil || strings.TrimSpace(string(name)) != attackerName {
			continue
		}
		data, err := os.ReadFile(f)
		if fields := strings.Fields(string(data)); err == nil && len(fields) > 1 {
			pages, _ := strconv.Atoi(fields[1]) // the kernel's own number
			most = max(most, pages*os.Getpagesize())
		}
	}
	return most
}

func countOf(data []byte, text string) int { return bytes.Count(data, []byte(text)) }
