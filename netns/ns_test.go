//go:build linux

package netns

import (
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns/capture"
)

// inode identifies the calling thread's network namespace.
func inode(t *testing.T) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

func newNS(t *testing.T) *NS {
	t.Helper()
	if forbidden != "" {
		t.Skip("this kernel does not let us make namespaces: " + forbidden)
	}
	n, err := New()
	if errors.Is(err, unix.EPERM) {
		t.Skip("needs CAP_SYS_ADMIN to make a network namespace")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func TestDo(t *testing.T) {
	n := newNS(t)
	outside := inode(t)
	var inside, again uint64
	for _, p := range []*uint64{&inside, &again} {
		if err := n.Do(func() error { *p = inode(t); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if inside == outside || inside != again {
		t.Errorf("outside %d, inside %d, then %d", outside, inside, again)
	}
	if got := inode(t); got != outside {
		t.Errorf("the caller moved from %d to %d", outside, got)
	}
	want := errors.New("from fn")
	if err := n.Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

func TestOpen(t *testing.T) {
	n := newNS(t)
	here, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	err = n.Do(func() error {
		again, err := Open("/proc/thread-self/ns/net")
		if err != nil {
			return err
		}
		defer again.Close()
		want := inode(t)
		// From inside, back out, and in again.
		return here.Do(func() error {
			return again.Do(func() error {
				if got := inode(t); got != want {
					t.Errorf("got %d, want %d", got, want)
				}
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.TempDir() + "/absent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestDoWithoutNamespace(t *testing.T) {
	n := newNS(t)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	err := n.Do(func() error { t.Error("ran outside"); return nil })
	if err == nil {
		t.Error("no error")
	}
	if err := n.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// A thread that can't go back must not serve anything else.
func TestTaintedThreadDies(t *testing.T) {
	n := newNS(t)
	tid := 0
	err := n.Do(func() error {
		tid = unix.Gettid()
		if tid == os.Getpid() {
			return nil // the main thread can't die; the next try gets another
		}
		// This thread alone loses what it needs to go back.
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		return unix.Capset(&head, &none[0])
	})
	if tid == os.Getpid() {
		t.Skip("ran on the main thread, which parks instead of dying")
	}
	if err == nil {
		t.Fatal("no error although the thread could not be restored")
	}
	deadline := time.After(5 * time.Second)
	poll := time.NewTicker(time.Millisecond) // the kernel does not announce it
	defer poll.Stop()
	for {
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(tid))
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("thread %d lives on in the wrong namespace", tid)
		case <-poll.C:
		}
	}
}

func TestListenInside(t *testing.T) {
	n := newNS(t)
	if err := n.Do(func() error { _, err := capture.Link(); return err }); err != nil {
		t.Fatal(err)
	}
	ln, err := n.Listen(t.Context(), "tcp", "127.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	d := net.Dialer{Timeout: time.Second}
	err = n.Do(func() error {
		c, err := d.DialContext(t.Context(), "tcp", "127.0.0.1:80")
		if err == nil {
			c.Close()
		}
		return err
	})
	if err != nil {
		t.Errorf("inside: %v", err)
	}
	c, err := ln.Accept() // outside
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
