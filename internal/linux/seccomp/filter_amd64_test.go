//go:build linux

package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestX32Dies(t *testing.T) {
	f := filter(Options{}.rules())
	for _, nr := range []uint32{unix.SYS_READ, unix.SYS_SOCKET, unix.SYS_GETPID, 512, 547, 0x3fffffff} {
		if got := judge(t, f, native(x32Bit|nr)); got != retKill {
			t.Errorf("x32 call %d: got %#x, want death", nr, got)
		}
	}
}
