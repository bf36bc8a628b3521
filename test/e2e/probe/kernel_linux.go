package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

const x32Bit = 0x40000000

// rawSyscall makes the call whose number is Port with harmless arguments: all
// zero but what Raw gives, eight bytes each. A call that the kernel accepts, or
// refuses only for its arguments, was let through.
func rawSyscall(j job.Job) job.Result {
	var args [6]uintptr
	buf := make([]byte, 256) // for calls that want a pointer: argument 0xff.. means this buffer
	for i := 0; i+8 <= len(j.Raw) && i/8 < 6; i += 8 {
		var v uint64
		for k := range 8 {
			v |= uint64(j.Raw[i+k]) << (8 * k)
		}
		args[i/8] = uintptr(v)
		if v == ^uint64(0) {
			args[i/8] = uintptr(unsafe.Pointer(&buf[0]))
		}
	}
	r, _, e := unix.Syscall6(uintptr(j.Port), args[0], args[1], args[2], args[3], args[4], args[5])
	runtime.KeepAlive(buf)
	switch {
	case e == 0:
		return done("returned " + strconv.Itoa(int(r)))
	case e == unix.EPERM || e == unix.EACCES || e == unix.ENOSYS:
		return fail(e)
	}
	return job.Result{Done: true, Status: int(e), Err: e.Error(), Text: "let through, refused for its arguments"}
}

// x32Getpid calls getpid by the x32 ABI, whose numbers carry one more bit: a
// filter that compares only plain numbers lets all of them through.
func x32Getpid(job.Job) job.Result {
	r, _, e := unix.RawSyscall(x32Bit|unix.SYS_GETPID, 0, 0, 0)
	if e != 0 {
		return fail(e)
	}
	return done("pid " + strconv.Itoa(int(r)))
}

// i386Getpid calls getpid by int 0x80, whose numbers mean other calls.
func i386Getpid(job.Job) job.Result {
	r := int80Getpid()
	if int32(r) != int32(os.Getpid()) {
		return fail(fmt.Errorf("int 0x80 returned %d", int32(r)))
	}
	return done("pid " + strconv.Itoa(int(int32(r))))
}

// tiocsti pushes a character into the terminal's input. Without a terminal the
// descriptor is /dev/null, where the call is refused for what it is: EPERM
// from a filter, ENOTTY from the kernel.
func tiocsti(j job.Job) job.Result {
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	req := uintptr(unix.TIOCSTI)
	if j.Port != 0 {
		req = uintptr(j.Port)
	}
	// A filter that compares 64 bits misses this spelling of the same request (CVE-2019-10063).
	if j.QType == 1 {
		req |= 1 << 32
	}
	b := []byte{'x'}
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), req, uintptr(unsafe.Pointer(&b[0])))
	runtime.KeepAlive(b)
	if e == unix.EPERM || e == unix.EACCES {
		return fail(e)
	}
	return job.Result{Done: true, Status: int(e), Text: "the kernel's own answer: " + e.Error()}
}

// writeFile writes Token into Via.
func writeFile(j job.Job) job.Result {
	f, err := os.OpenFile(j.Via, os.O_WRONLY, 0)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	_, err = f.WriteString(j.Token)
	return outcome(err, "written")
}

// openForWriting only opens Via: the control runs on a machine that must stay
// as it is.
func openForWriting(j job.Job) job.Result {
	f, err := os.OpenFile(j.Via, os.O_WRONLY, 0)
	if err != nil {
		return fail(err)
	}
	return outcome(f.Close(), "opened for writing")
}

func renameFile(j job.Job) job.Result {
	if err := os.Rename(j.Via, j.Via+".moved"); err != nil {
		return fail(err)
	}
	return outcome(os.Rename(j.Via+".moved", j.Via), "renamed and back")
}

func removeFile(j job.Job) job.Result { return outcome(os.Remove(j.Via), "removed") }

func readFile(j job.Job) job.Result {
	data, err := os.ReadFile(j.Via)
	if err != nil {
		return fail(err)
	}
	if j.Token != "" && !strings.Contains(string(data), j.Token) {
		return fail(errors.New("readable, but without the secret"))
	}
	return done(first(data, 100))
}

// mknodDisk makes a device node for the first disk.
func mknodDisk(job.Job) job.Result {
	dir, err := scratch()
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	return outcome(unix.Mknod(dir+"/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(253, 0))), "made a disk")
}

// statusLine reports the fields of /proc/self/status that say which walls stand.
func statusLine(job.Job) job.Result {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fail(err)
	}
	var keep []string
	for line := range strings.SplitSeq(string(data), "\n") {
		for _, want := range []string{"Uid:", "Cap", "NoNewPrivs:", "Seccomp:", "NSpid:"} {
			if strings.HasPrefix(line, want) {
				keep = append(keep, strings.Join(strings.Fields(line), " "))
			}
		}
	}
	r := done(interfaces())
	r.Answers = keep
	return r
}

// envSecret looks for Token in the environment of every process it can see.
func envSecret(j job.Job) job.Result {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return fail(err)
	}
	for _, d := range dirs {
		env, err := os.ReadFile("/proc/" + d.Name() + "/environ")
		if err == nil && strings.Contains(string(env), j.Token) {
			return done("in the environment of " + d.Name())
		}
	}
	return fail(errors.New("not in any environment"))
}

// dropAmbient clears ambient and inheritable capabilities of the calling
// thread, which then executes another program.
func dropAmbient() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return err
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	return unix.Capset(&hdr, &data[0])
}
