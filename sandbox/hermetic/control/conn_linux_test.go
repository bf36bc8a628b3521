package control

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func pair(t *testing.T) (launcher, worker *Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	launcher, worker = LauncherConn(fds[0]), WorkerConn(fds[1])
	t.Cleanup(func() { launcher.Close(); worker.Close() })
	return launcher, worker
}

// A descriptor goes to the worker, and none comes from it.
func TestDescriptors(t *testing.T) {
	launcher, worker := pair(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := launcher.Send(Message{Dialled: &DialOutcome{ID: 7}}, int(null.Fd())); err != nil {
		t.Fatal(err)
	}
	m, fd, err := worker.Receive()
	if err != nil || m.Dialled == nil || m.Dialled.ID != 7 || fd == nil {
		t.Fatalf("%+v, %v, %v", m, fd, err)
	}
	fd.Close()
	before := count(t)
	if err := worker.Send(Message{Dial: &DialOrder{ID: 7}}, int(null.Fd()), int(null.Fd())); err != nil {
		t.Fatal(err)
	}
	if m, fd, err := launcher.Receive(); err != nil || m.Dial == nil || fd != nil {
		t.Fatalf("%+v, %v, %v", m, fd, err)
	}
	if after := count(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func count(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A worker can't make the launcher take more than a report.
func TestTooLarge(t *testing.T) {
	launcher, worker := pair(t)
	if _, err := unix.Write(worker.FD, binary.BigEndian.AppendUint32(nil, fromWorker+1)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := launcher.Receive(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	if err := worker.Send(Message{Ended: &EndReport{Limit: strings.Repeat("x", fromWorker)}}); err == nil {
		t.Error("it can be sent")
	}
}

func TestEnd(t *testing.T) {
	launcher, worker := pair(t)
	launcher.Shutdown()
	for _, c := range []*Conn{launcher, worker} {
		if _, _, err := c.Receive(); !errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
	}
}
