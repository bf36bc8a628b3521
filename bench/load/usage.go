package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// family reports the processes of pid's process group, which c.launch has made.
func family(pid int) []int {
	var all []int
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		// Behind the name in brackets: state, parent, group.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 3 || fields[2] != strconv.Itoa(pid) {
			continue
		}
		if member, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			all = append(all, member)
		}
	}
	return all
}

// cpu reports the processor time that c has used, user and system.
func (c *contestant) cpu() (total time.Duration, err error) {
	if c.cmd == nil {
		return 0, nil
	}
	for _, pid := range family(c.cmd.Process.Pid) {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil || len(files) == 0 {
			return 0, fmt.Errorf("%s has ended, see %s", c.name, c.log)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				continue // a thread that has ended
			}
			ran, _, _ := strings.Cut(string(text), " ")
			ns, err := strconv.ParseInt(ran, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", f, err)
			}
			total += time.Duration(ns)
		}
	}
	return total, nil
}

// memory reports the bytes that are resident for c: what processes share is
// counted once.
func (c *contestant) memory() (total int64, err error) {
	for _, pid := range family(c.cmd.Process.Pid) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		for line := range bytes.Lines(text) {
			if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "Pss:" {
				kib, err := strconv.ParseInt(string(f[1]), 10, 64)
				if err != nil {
					return 0, err
				}
				total += kib << 10
			}
		}
	}
	return total, nil
}
