//go:build linux

package seccomp

var archProbes map[string]probe // 32-bit programs are another architecture altogether
