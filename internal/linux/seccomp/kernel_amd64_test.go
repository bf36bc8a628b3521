//go:build linux

package seccomp

import (
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// int80 asks for the process id through the 32-bit entry: machine code, as no
// compiler for this architecture makes it.
func int80() error {
	code := []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20 (__NR_getpid of i386)
		0xcd, 0x80, // int 0x80
		0xc3, // ret
	}
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	copy(page, code)
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		return err
	}
	entry := unsafe.Pointer(&page[0])
	closure := unsafe.Pointer(&entry)
	(*(*func())(unsafe.Pointer(&closure)))()
	return nil
}

func x32() error { return sysno(x32Bit | unix.SYS_GETPID) }

var archProbes = map[string]probe{
	"int 0x80": {"", int80, killed, ""}, // without the filter: ok where the kernel has the 32-bit entry
	"x32":      {"", x32, killed, ""},   // ok or ENOSYS
}

// The test above would also pass if the machine code itself were wrong.
func TestInt80WithoutFilter(t *testing.T) {
	out, err := exec.Command("/proc/self/exe", asProbe, "int 0x80", "none").CombinedOutput()
	if err != nil {
		t.Skipf("this kernel has no 32-bit entry: %v", err)
	}
	if string(out) != "ok" {
		t.Errorf("got %s", out)
	}
}
