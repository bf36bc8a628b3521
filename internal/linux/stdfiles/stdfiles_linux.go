package stdfiles

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Check refuses standard files by which a program would get out of its sandbox.
// files are standard input, output and error; none may be one of protect, the
// paths of files that the program must not change.
//
// Threat: a descriptor made outside keeps the rights of its place, whatever
// namespace its user is in: a network socket can be disconnected and connected
// to anywhere, from a directory ".." leads to the host's whole tree, and a
// protected file is opened for writing through /proc/self/fd -> only files,
// pipes, devices and connected unix streams are passed on. Left over: what the
// person meant to pass, such as a file to write to.
func Check(files [3]*os.File, protect []string) error {
	for i, f := range files {
		if what := unfit(f, protect); what != "" {
			return fmt.Errorf("%s is %s: put a pipe in between, such as: cat | launch ... | cat", [...]string{"standard input", "standard output", "standard error"}[i], what)
		}
	}
	return nil
}

// unfit says what is wrong with f; "": nothing.
func unfit(f *os.File, protect []string) string {
	fi, err := f.Stat()
	if err != nil {
		return "unreadable (" + err.Error() + ")"
	}
	switch {
	case fi.IsDir():
		return "a directory, from which the program could reach files outside"
	case fi.Mode()&os.ModeSocket != 0 && !connectedStream(f):
		return "a socket that the program could connect to anywhere, past the gate"
	case fi.Mode()&os.ModeDevice != 0:
		return ""
	}
	for _, path := range protect {
		if p, err := os.Stat(path); err == nil && os.SameFile(p, fi) {
			return path + " itself, which the program must not change"
		}
	}
	return ""
}

// connectedStream reports whether f is a unix stream that has its peer: the
// kernel does not connect such a socket again.
func connectedStream(f *os.File) bool {
	fd := int(f.Fd())
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || family != unix.AF_UNIX {
		return false
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM && kind != unix.SOCK_SEQPACKET {
		return false
	}
	_, err = unix.Getpeername(fd)
	return err == nil
}
