// Package procstat reads what the kernel says about a process in one line:
//
//	p, err := procstat.Read(pid)
//	if err == nil && p.State == 'T' {
//		... // it is stopped
//	}
package procstat

import (
	"bytes"
	"errors"
	"os"
	"strconv"
)

// Process is a part of one line of /proc/PID/stat. See proc_pid_stat(5).
type Process struct {
	State   byte // R, S, D, T, Z ...
	Parent  int
	Started string // in clock ticks since the machine booted
}

// Read reads the line of process pid.
func Read(pid int) (Process, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, err
	}
	return parse(data)
}

var errLine = errors.New("/proc: a line about a process is not as it should be")

func parse(line []byte) (Process, error) {
	// 12 (name) S 1 ...: the name may hold anything.
	f := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return Process{}, errLine
	}
	parent, err := strconv.Atoi(string(f[1]))
	if err != nil {
		return Process{}, errLine
	}
	return Process{State: f[0][0], Parent: parent, Started: string(f[19])}, nil
}
