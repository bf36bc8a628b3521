package handover

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/policy"
)

// patience is how long a test waits for what should happen at once.
const patience = 20 * time.Second

// records is a sink that keeps everything.
type records struct {
	mu   sync.Mutex
	all  []eventtest.Line
	fail error
	more chan struct{} // closed and replaced at each event
}

func newRecords() *records { return &records{more: make(chan struct{})} }

func (r *records) Emit(e event.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return r.fail
	}
	r.all = append(r.all, eventtest.Of(e))
	close(r.more)
	r.more = make(chan struct{})
	return nil
}

func (r *records) failWith(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

// wait waits for an event that match takes.
func (r *records) wait(t *testing.T, what string, match func(eventtest.Line) bool) eventtest.Line {
	t.Helper()
	limit := time.After(patience)
	for {
		r.mu.Lock()
		all, more := r.all, r.more
		r.mu.Unlock()
		for _, e := range all {
			if match(e) {
				return e
			}
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("no event: %s; there are %+v", what, all)
		}
	}
}

func ofType(typ string) func(eventtest.Line) bool {
	return func(e eventtest.Line) bool { return e.Type == typ }
}

// doc makes a policy document of "allow", "!deny" and "=name=addr" lines.
func doc(lines ...string) *policy.Document {
	d := new(policy.Document)
	for _, l := range lines {
		if text, ok := strings.CutPrefix(l, "!"); ok {
			d.Deny = append(d.Deny, policy.Entry{Text: text})
		} else if text, ok := strings.CutPrefix(l, "="); ok {
			d.Hosts = append(d.Hosts, policy.Entry{Text: text})
		} else {
			d.Allow = append(d.Allow, policy.Entry{Text: l})
		}
	}
	return d
}

func host(t *testing.T, s string) policy.Host {
	t.Helper()
	h, err := policy.ParseHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func compile(t *testing.T, docs ...*policy.Document) *policy.Policy {
	t.Helper()
	p, err := policy.Compile(docs...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// daemon is a Server that serves.
type daemon struct {
	*Server
	path   string
	record *records
	stop   context.CancelFunc
	done   chan error
}

// serve starts s under ceiling; change adjusts it before.
func serve(t *testing.T, ceiling *policy.Document, change func(*Server)) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{path: filepath.Join(dir, "c.sock"), record: newRecords(), done: make(chan error, 1)}
	d.Server = &Server{Name: "default", Ceiling: new(policy.Current), Events: d.record, Version: "test"}
	d.Ceiling.Store(compile(t, ceiling))
	if change != nil {
		change(d.Server)
	}
	ctx, stop := context.WithCancel(t.Context())
	d.stop = stop
	ln, err := Listen(ctx, d.path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { d.done <- d.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-d.done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve does not end")
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return d
}

// launcher is the other half, with doors on the loopback.
type launcher struct {
	*Client
	record *records
	proxy  string // address of its explicit door
	lost   chan error
	leave  func() // ends the session and waits
}

func offer(session string, docs ...*policy.Document) Offer {
	return Offer{Version: "test", Session: session, Isolation: "netns", ArgvHash: strings.Repeat("0a", 32), Documents: docs}
}

// join opens a session and hands its doors over.
func (d *daemon) join(t *testing.T, o Offer) *launcher {
	t.Helper()
	l, err := d.tryJoin(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (d *daemon) tryJoin(t *testing.T, o Offer) (*launcher, error) {
	t.Helper()
	l := &launcher{record: newRecords(), lost: make(chan error, 1)}
	if o.Events == nil {
		o.Events = l.record
	}
	if o.Lost == nil {
		o.Lost = func(err error) { l.lost <- err }
	}
	var err error
	if l.Client, err = Dial(t.Context(), d.path, o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	sockets := loopback(t)
	l.proxy = localAddr(t, sockets.Explicit)
	l.leave = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		_ = l.Close() // tests that care ask before
	})
	t.Cleanup(l.leave)
	return l, l.Open(ctx, &wg, sockets)
}

// loopback opens doors on the loopback.
func loopback(t *testing.T) Sockets {
	t.Helper()
	return Sockets{Explicit: tcpFile(t), DNSTCP: tcpFile(t), DNSUDP: udpFile(t)}
}

func tcpFile(t *testing.T) *os.File {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func udpFile(t *testing.T) *os.File {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	f, err := pc.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func localAddr(t *testing.T, f *os.File) string {
	t.Helper()
	ln, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// origin is a server that sends back what it gets. It reports its port.
func origin(t *testing.T) uint16 {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return netip.MustParseAddrPort(ln.Addr().String()).Port()
}

// tunnel asks the launcher's door for a CONNECT; an error is its refusal.
func (l *launcher) tunnel(authority string) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", l.proxy, patience)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", authority, authority)
	status, err := bufio.NewReaderSize(c, 16).ReadString('\n')
	if err != nil {
		c.Close()
		return nil, err
	}
	if !strings.Contains(status, " 200 ") {
		rest, _ := io.ReadAll(c)
		c.Close()
		return nil, errors.New(status + string(rest))
	}
	return c, nil
}

// echo reports whether c carries bytes both ways. What is left of the head
// comes first.
func echo(c net.Conn) bool {
	if _, err := io.WriteString(c, "ping\n"); err != nil {
		return false
	}
	r := bufio.NewReader(c)
	for range 32 {
		line, err := r.ReadString('\n')
		if err != nil {
			return false
		}
		if line == "ping\n" {
			return true
		}
	}
	return false
}

// closed reports whether c ends soon.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, c)
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}
