package proxy

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/event"
)

// gateProcess is the environment variable that makes TestGateWithFewFiles the
// gate of TestOutOfFiles; its value is the origin.
const gateProcess = "EGRESSD_TEST_ORIGIN"

// TestGateWithFewFiles is a process of its own: a gate with few descriptors
// left. It prints its address and then its events, until its input ends.
func TestGateWithFewFiles(t *testing.T) {
	origin := os.Getenv(gateProcess)
	if origin == "" {
		return // not a test by itself
	}
	g := newGate(t, "raw:a.example:22")
	g.name("a.example", 22, origin)
	out := json.NewEncoder(os.Stdout)
	g.sink.hook = func(e event.Event) { _ = out.Encode(e) } // one at a time: see below
	var mu sync.Mutex
	emit := g.sink.hook
	g.sink.hook = func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		emit(e)
	}
	g.start()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		t.Fatal(err)
	}
	var hog []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		hog = append(hog, f)
	}
	for _, f := range hog[len(hog)-9:] { // room for four tunnels and a half
		f.Close()
	}
	mu.Lock()
	_ = out.Encode(g.explicitAddr)
	mu.Unlock()
	_, _ = os.Stdin.Read(make([]byte, 1))
	for _, f := range hog[:len(hog)-9] {
		f.Close()
	}
}

// TestOutOfFiles opens more connections than a gate has descriptors: those that
// are open live, the others are refused and on record, and when there is room
// again everything is as before.
func TestOutOfFiles(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestGateWithFewFiles$")
	cmd.Env = append(os.Environ(), gateProcess+"="+serveOrigin(t, echo))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(stdout)
	var addr string
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &addr) != nil {
		t.Fatalf("no address: %s", lines.Text())
	}
	sink := new(memSink)
	go func() {
		for lines.Scan() {
			var e event.Event
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				_ = sink.Emit(e)
			}
		}
	}()

	half, err := net.Dial("tcp", addr) // takes one, so that accept is what fails
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	_, _ = half.Write([]byte("CONNECT a.exa"))
	var open []net.Conn
	const tries = 12
	for range tries {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			continue // a reset that came before connect had returned
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = c.Write([]byte(connectA))
		if head, err := headOf(c); err == nil && strings.HasPrefix(head, "HTTP/1.1 200 ") && pingPong(c) {
			open = append(open, c)
		} else {
			c.Close()
		}
	}
	if len(open) < 3 || len(open) > tries-3 {
		t.Fatalf("%d of %d are open: nothing was tried", len(open), tries)
	}
	for i, c := range open {
		if !pingPong(c) {
			t.Errorf("open connection %d died when descriptors ran out", i)
		}
	}
	explained := func() (n int) {
		for _, e := range sink.all(event.NetworkConnected) {
			if e.Reason != "connection_limit_reached" {
				continue
			}
			if e.Flow != 0 {
				n++ // it could be told: the dial failed
			} else if k, ok := strings.CutSuffix(e.Error, " connections "+dropFiles); ok {
				more, _ := strconv.Atoi(k)
				n += more
			}
		}
		return n
	}
	settleUp(t, "refusals in the events", tries-len(open), explained)
	if evs := sink.all(event.NetworkConnected); !strings.HasSuffix(evs[len(evs)-1].Error, dropFiles) {
		t.Errorf("accept has not failed: %+v", evs)
	}
	for _, c := range open {
		c.Close()
	}
	for deadline := time.Now().Add(patience); ; {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.SetDeadline(time.Now().Add(patience))
			_, _ = c.Write([]byte(connectA))
			head, _ := headOf(c)
			fine := strings.HasPrefix(head, "HTTP/1.1 200 ") && pingPong(c)
			c.Close()
			if fine {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("no connection when there is room again")
		}
	}
}
