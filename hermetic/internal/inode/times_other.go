//go:build !linux

package inode

import "syscall"

// times are not the same fields on other systems, where the tier does not run.
func (*Inode) times(*syscall.Stat_t) {}
