package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// manager is a fake service manager: a datagram socket.
func manager(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestNotify(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "notify"), "@egressd-test-" + strconv.Itoa(os.Getpid())} {
		conn := manager(t, path)
		n, err := NewNotifier([]string{"NOTIFY_SOCKET=" + path})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			send func() error
			want string
		}{
			{func() error { return n.Ready("") }, "READY=1\n"},
			{func() error { return n.Ready("2 policies") }, "READY=1\nSTATUS=2 policies\n"},
			{func() error { return n.Stopping("draining") }, "STOPPING=1\nSTATUS=draining\n"},
			{func() error { return n.Stopping("a\nREADY=0\x7fb\xff") }, "STOPPING=1\nSTATUS=a READY=0 b?\n"}, // one assignment, whatever is in it
			{func() error { return n.Extend(30 * time.Second) }, "EXTEND_TIMEOUT_USEC=30000000\n"},
		} {
			if err := tt.send(); err != nil {
				t.Fatal(err)
			}
			if got := receive(deadline(t), t, conn); got != tt.want {
				t.Errorf("%s: got %q, want %q", path, got, tt.want)
			}
		}
		if err := n.Ready(strings.Repeat("é", maxStatusBytes)); err != nil {
			t.Fatal(err)
		}
		if got := receive(deadline(t), t, conn); len(got) > maxStatusBytes+len("READY=1\nSTATUS=\n") || strings.Contains(got, "\ufffd") {
			t.Errorf("a long status has %d bytes", len(got))
		}
	}
}

// Reloading carries the clock that the manager compares with its own.
func TestReloading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn := manager(t, path)
	n, err := NewNotifier([]string{"NOTIFY_SOCKET=" + path})
	if err != nil {
		t.Fatal(err)
	}
	before, err := monotonicMicroseconds()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Reloading(); err != nil {
		t.Fatal(err)
	}
	after, err := monotonicMicroseconds()
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(receive(deadline(t), t, conn), "RELOADING=1\nMONOTONIC_USEC=")
	usec, perr := strconv.ParseInt(strings.TrimSuffix(text, "\n"), 10, 64)
	if !ok || perr != nil || usec < before || usec > after {
		t.Errorf("got %q, want a time from %d to %d", text, before, after)
	}
}

// Without a manager nothing is told, and nothing is wrong.
func TestNobodyToNotify(t *testing.T) {
	silent, err := NewNotifier([]string{"PATH=/bin", "WATCHDOG_USEC=1000"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []*Notifier{nil, new(Notifier), silent} {
		for _, err := range []error{n.Ready("x"), n.Reloading(), n.Stopping("x"), n.Extend(1)} {
			if err != nil {
				t.Error(err)
			}
		}
		n.Watchdog(context.Background(), nil, nil) // returns at once
	}
}

func TestNotifierErrors(t *testing.T) {
	for _, tt := range []struct {
		env  []string
		want string // "": good
	}{
		{[]string{"NOTIFY_SOCKET="}, ""},
		{[]string{"NOTIFY_SOCKET=relative"}, "absolute path"},
		{[]string{"NOTIFY_SOCKET=/"}, "absolute path"},
		{[]string{"NOTIFY_SOCKET=@"}, "absolute path"},
		{[]string{"NOTIFY_SOCKET=vsock:2:1234"}, "absolute path"},
		{[]string{"NOTIFY_SOCKET=/x", "WATCHDOG_USEC=0"}, "WATCHDOG_USEC"},
		{[]string{"NOTIFY_SOCKET=/x", "WATCHDOG_USEC=-5"}, "WATCHDOG_USEC"},
		{[]string{"NOTIFY_SOCKET=/x", "WATCHDOG_USEC=99999999999999999999"}, "WATCHDOG_USEC"},
		{[]string{"NOTIFY_SOCKET=/x", "WATCHDOG_USEC=9223372036854775807"}, "WATCHDOG_USEC"},
		{[]string{"NOTIFY_SOCKET=/x", "WATCHDOG_USEC=nonsense", "WATCHDOG_PID=1"}, ""}, // another's
	} {
		n, err := newNotifier(tt.env, 7)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || n != nil) {
			t.Errorf("%q: %v, want %q", tt.env, err, tt.want)
		}
	}
	n, err := NewNotifier([]string{"NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "gone")})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Ready(""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a manager that is gone: %v", err)
	}
}

// The watchdog is fed while the daemon is well, and no longer.
func TestWatchdog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn := manager(t, path)
	n, err := newNotifier([]string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=20000", "WATCHDOG_PID=7"}, 7)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(deadline(t))
	sick := errors.New("sick")
	var ill atomic.Bool
	failed := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Watchdog(ctx, func() error {
			if ill.Load() {
				return sick
			}
			return nil
		}, func(err error) {
			select {
			case failed <- err:
			default:
			}
		})
	}()
	for range 3 {
		if got := receive(ctx, t, conn); got != "WATCHDOG=1\n" {
			t.Fatalf("got %q", got)
		}
	}
	ill.Store(true)
	if err := <-failed; !errors.Is(err, sick) {
		t.Errorf("got %v", err)
	}
	cancel()
	<-done
}

// A manager that does not read cannot hold the daemon up for long.
func TestNotifyStalled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	manager(t, path)
	n, err := NewNotifier([]string{"NOTIFY_SOCKET=" + path})
	if err != nil {
		t.Fatal(err)
	}
	for range 10000 {
		if err := n.Ready("x"); err != nil {
			if !strings.Contains(err.Error(), "does not read") {
				t.Errorf("got %v", err)
			}
			return
		}
	}
	t.Error("the queue of a socket that nobody reads has no end")
}
