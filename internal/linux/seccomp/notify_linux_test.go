//go:build linux && (amd64 || arm64)

package seccomp

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asking runs f on a thread that asks about connect, and answers with answer. It
// reports what f returned.
func asking(t *testing.T, answer func(*Listener, Request) error, f func() error) error {
	t.Helper()
	type listened struct {
		l   *Listener
		err error
	}
	made, result := make(chan listened), make(chan error)
	begin := make(chan bool)
	go func() {
		runtime.LockOSThread() // and never back: the thread ends with this goroutine
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			made <- listened{err: err}
			return
		}
		l, err := Listen(Calls{Connect: true})
		made <- listened{l, err}
		if err == nil && <-begin {
			result <- f()
		}
	}()
	m := <-made
	if errors.Is(m.err, ErrNotSupported) || errors.Is(m.err, ErrListened) {
		t.Skip(m.err)
	}
	if m.err != nil {
		t.Fatal(m.err)
	}
	go func() {
		r, err := m.l.Receive()
		if err == nil {
			err = answer(m.l, r)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	begin <- true
	return <-result
}

// unconnected connects no descriptor at all.
func unconnected() error { return unix.Connect(-1, &unix.SockaddrUnix{Name: "/x"}) }

func TestListen(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(*Listener, Request) error
		want   error
	}{
		{"an error", func(l *Listener, r Request) error { return l.Answer(r.ID, unix.EDOM) }, unix.EDOM},
		{"success", func(l *Listener, r Request) error { return l.Answer(r.ID, 0) }, nil},
		{"go on", func(l *Listener, r Request) error { return l.Continue(r.ID) }, unix.EBADF},
	} {
		err := asking(t, func(l *Listener, r Request) error {
			if r.Call != unix.SYS_CONNECT || int32(r.Args[0]) != -1 || r.Thread <= 0 || !l.Valid(r.ID) {
				t.Errorf("%+v", r)
			}
			if err := tt.answer(l, r); err != nil {
				return err
			}
			if l.Valid(r.ID) {
				t.Error("it waits after the answer")
			}
			if err := l.Answer(r.ID, 0); err == nil {
				t.Error("a second answer is taken")
			}
			return nil
		}, unconnected)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := unconnected(); !errors.Is(err, unix.EBADF) {
		t.Errorf("on another thread: %v", err)
	}
}

// A thread that asks cannot have a second listener.
func TestListenTwice(t *testing.T) {
	err := asking(t, func(l *Listener, r Request) error { return l.Answer(r.ID, 0) }, func() error {
		if err := unconnected(); err != nil { // the answer is used up
			return err
		}
		_, err := Listen(Calls{Connect: true})
		return err
	})
	if !errors.Is(err, ErrListened) {
		t.Error(err)
	}
}

// What is asked about, whatever stands in the upper halves.
func TestCalls(t *testing.T) {
	both := filter(Calls{Connect: true, Write: true}.rules())
	openat := func(flags uint64) call {
		return call{nr: unix.SYS_OPENAT, arch: nativeArch, args: [6]uint64{0, 0, flags | high}}
	}
	for _, tt := range []struct {
		name string
		call call
		want uint32
	}{
		{"connect", call{nr: unix.SYS_CONNECT, arch: nativeArch}, retNotify},
		{"mkdirat", call{nr: unix.SYS_MKDIRAT, arch: nativeArch}, retNotify},
		{"renameat2", call{nr: unix.SYS_RENAMEAT2, arch: nativeArch}, retNotify},
		{"append", openat(unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND), retNotify},
		{"change", openat(unix.O_RDWR), retNotify},
		{"read", openat(unix.O_RDONLY | unix.O_CLOEXEC | unix.O_DIRECTORY), retAllow},
		{"make", openat(unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL), retAllow},
		{"empty", openat(unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC), retAllow},
		{"unlinkat", call{nr: unix.SYS_UNLINKAT, arch: nativeArch}, retAllow},
		{"sendmsg", call{nr: unix.SYS_SENDMSG, arch: nativeArch}, retAllow},
		{"another architecture", call{nr: unix.SYS_CONNECT, arch: nativeArch + 1}, retKill},
	} {
		if got := judge(t, both, tt.call); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
	all := filter(Calls{Write: true, New: true}.rules())
	for _, flags := range []uint64{unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL, unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC} {
		if got := judge(t, all, openat(flags)); got != retNotify {
			t.Errorf("flags %#x where new files are asked about: %#x", flags, got)
		}
	}
	if got := judge(t, filter(Calls{Write: true}.rules()), call{nr: unix.SYS_CONNECT, arch: nativeArch}); got != retAllow {
		t.Errorf("connect where only writes are asked about: %#x", got)
	}
}
