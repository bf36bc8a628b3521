package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pin leaves this process, and what it starts, one processor.
func pin(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		var tid int
		if _, err := fmt.Sscan(task.Name(), &tid); err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("processor %d: %w", cpu, err)
		}
	}
	return nil
}
