package proxy

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/proxy/internal/drops"

	"golang.org/x/sys/unix"

	"egressd/event/eventtest"
)

// gateProcess is the environment variable that makes TestGateProcess the gate of
// another test; its value is the origin.
const gateProcess = "EGRESSD_TEST_ORIGIN"

// gateReport is a line that TestGateProcess prints.
type gateReport struct {
	Addr       string // the first one
	Memory     uint64 // heap and stacks in use, bytes
	Goroutines int
	Event      *eventtest.Line
}

// TestGateProcess is a process of its own: a gate that prints its address and
// its events, and obeys its input: "f" leaves it nine descriptors, "m" has it
// print what it holds.
func TestGateProcess(t *testing.T) {
	origin := os.Getenv(gateProcess)
	if origin == "" {
		return // not a test by itself
	}
	g := newGate(t, "raw:a.example:22")
	g.name("a.example", 22, origin)
	var mu sync.Mutex
	print := func(r gateReport) {
		mu.Lock()
		defer mu.Unlock()
		_ = json.NewEncoder(os.Stdout).Encode(r)
	}
	g.sink.hook = func(e eventtest.Line) {
		if e.Decision == "blocked" {
			print(gateReport{Event: &e})
		}
	}
	g.start()
	print(gateReport{Addr: g.explicitAddr})
	for cmd := make([]byte, 1); ; {
		if _, err := os.Stdin.Read(cmd); err != nil {
			return
		}
		switch cmd[0] {
		case 'f':
			defer closeFiles(hogFiles(t, 9))
		case 'm':
			g.sink.forget()
			print(gateReport{Memory: memoryInUse(), Goroutines: runtime.NumGoroutine()})
			continue
		}
		print(gateReport{})
	}
}

func memoryInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// hogFiles takes all descriptors but left.
func hogFiles(t *testing.T, left int) (hog []*os.File) {
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		hog = append(hog, f)
	}
	closeFiles(hog[len(hog)-left:])
	return hog[:len(hog)-left]
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// gateChild is a TestGateProcess that is running.
type gateChild struct {
	t       testing.TB
	addr    string
	stdin   io.Writer
	reports chan gateReport // but events, which are in sink
	sink    memSink
}

func startGate(t testing.TB, origin string) *gateChild {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestGateProcess$")
	cmd.Env = append(os.Environ(), gateProcess+"="+origin)
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
	c := &gateChild{t: t, stdin: stdin, reports: make(chan gateReport)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.read(stdout)
	}()
	t.Cleanup(func() {
		stdin.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	c.addr = c.next().Addr
	return c
}

func (c *gateChild) read(stdout io.Reader) {
	defer close(c.reports)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var r gateReport
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			return // "PASS"
		}
		if r.Event != nil {
			c.sink.keep(*r.Event)
			continue
		}
		c.reports <- r
	}
}

func (c *gateChild) next() gateReport {
	c.t.Helper()
	select {
	case r := <-c.reports:
		return r
	case <-time.After(patience):
		c.t.Fatal("the gate does not answer")
		return gateReport{}
	}
}

// tell sends one command and reads its report.
func (c *gateChild) tell(cmd string) gateReport {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, cmd); err != nil {
		c.t.Fatal(err)
	}
	return c.next()
}

// forget drops the events that were kept.
func (m *memSink) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = nil
}

// open opens a tunnel and uses it once.
func (c *gateChild) open() (net.Conn, bool) {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return nil, false // a reset that came before connect had returned
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, connectA)
	if head, err := headOf(conn); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 ") || !pingPong(conn) {
		conn.Close()
		return nil, false
	}
	return conn, true
}

// idleTunnels opens n tunnels, leaves them idle, and reports what each of them
// costs the gate, and whether anything is left when they are gone.
func idleTunnels(t testing.TB, n int) (bytesEach float64) {
	g := startGate(t, serveOrigin(t, echo))
	var tunnels []net.Conn
	one, _ := g.open() // what is made once is made
	before := g.tell("m")
	for i := range n {
		c, ok := g.open()
		if !ok {
			t.Fatalf("tunnel %d of %d is refused: %+v", i, n, g.sink.all("network.connected"))
		}
		tunnels = append(tunnels, c)
	}
	during := g.tell("m")
	for _, c := range tunnels {
		c.Close()
	}
	for deadline := time.Now().Add(patience); ; {
		after := g.tell("m")
		// Maps keep the room they have grown to, and so does the next one. The race detector
		// makes everything larger.
		if after.Goroutines <= before.Goroutines && (withRace || after.Memory < before.Memory+1<<20+uint64(n)*2<<10) {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("%d tunnels leave %d goroutines and %d bytes behind", n, after.Goroutines-before.Goroutines, after.Memory-before.Memory)
			break
		}
	}
	if one != nil {
		one.Close()
	}
	return float64(during.Memory-before.Memory) / float64(n)
}

// TestIdleTunnelMemory bounds what an idle tunnel costs.
func TestIdleTunnelMemory(t *testing.T) {
	if each := idleTunnels(t, 500); each > 20<<10 && !withRace {
		t.Errorf("%.0f bytes an idle tunnel", each)
	}
}

// BenchmarkIdleTunnels reports what each of 9,000 idle tunnels costs.
func BenchmarkIdleTunnels(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(idleTunnels(b, 9000), "B/tunnel")
	}
}

// TestOutOfFiles opens more connections than a gate has descriptors: those that
// are open live, the others are refused and on record, and when there is room
// again everything is as before.
func TestOutOfFiles(t *testing.T) {
	g := startGate(t, serveOrigin(t, echo))
	g.tell("f")
	var open []net.Conn
	const tries, more = 12, 3
	for range tries {
		if c, ok := g.open(); ok {
			defer c.Close()
			open = append(open, c)
		}
	}
	if len(open) < 3 || len(open) > tries-3 {
		t.Fatalf("%d of %d are open: nothing was tried", len(open), tries)
	}
	half, err := net.Dial("tcp", g.addr) // takes the last one, if there is one, so that accept is what fails
	switch {
	case err == nil:
		defer half.Close()
		_, _ = half.Write([]byte("CONNECT a.exa"))
	case !errors.Is(err, unix.ECONNRESET): // there was none: it is reset, perhaps before connect has returned
		t.Fatal(err)
	}
	for range more {
		if c, ok := g.open(); ok {
			defer c.Close()
			t.Error("a tunnel without descriptors")
		}
	}
	for i, c := range open {
		if !pingPong(c) {
			t.Errorf("open connection %d died when descriptors ran out", i)
		}
	}
	explained := func() (n int) {
		for _, e := range g.sink.all("network.connected") {
			if e.Reason != "connection_limit_reached" {
				continue
			}
			if e.Flow != 0 {
				n++ // it could be told: the dial failed
			} else if k, ok := strings.CutSuffix(e.Error, " connections "+drops.Files); ok {
				more, _ := strconv.Atoi(k)
				n += more
			}
		}
		return n
	}
	want := tries - len(open) + more // half may be one, too
	settleUp(t, "refusals in the events", want, func() int { return min(explained(), want) })
	byAccept := func(e eventtest.Line) bool { return strings.HasSuffix(e.Error, drops.Files) }
	if evs := g.sink.all("network.connected"); !slices.ContainsFunc(evs, byAccept) {
		t.Errorf("accept has not failed: %+v", evs)
	}
	for _, c := range open {
		c.Close()
	}
	for deadline := time.Now().Add(patience); ; {
		if c, ok := g.open(); ok {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no connection when there is room again")
		}
	}
}
