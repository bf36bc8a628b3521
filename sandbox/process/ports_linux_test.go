package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"egressd/event/eventtest"
	"egressd/gate"
	"egressd/sandbox"
)

// echoServer answers each line with "echo: " and the line.
func echoServer(t *testing.T) uint16 {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
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
				data, _ := io.ReadAll(c)
				fmt.Fprintf(c, "echo: %s", data)
			}()
		}
	}()
	return uint16(ln.Addr().(*net.TCPAddr).Port)
}

const sendLine = `import socket,sys
s=socket.create_connection((sys.argv[1],int(sys.argv[2])),5)
s.sendall(b"hello"); s.shutdown(socket.SHUT_WR)
print(s.makefile().read())`

func needPython(t *testing.T) string {
	t.Helper()
	for _, p := range []string{"/usr/bin/python3", "/usr/local/bin/python3"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	t.Skip("no python3 in the usual place")
	return ""
}

// TestHostPort reaches one port of the host's loopback, and no other.
func TestHostPort(t *testing.T) {
	python := needPython(t)
	port := echoServer(t)
	other := echoServer(t)
	rec := new(recorder)
	b := &Backend{
		HostPorts: []HostPort{{Port: port, Localhost: true}},
		Gate: gate.Config{
			Events: rec, Policy: compile(t, []string{fmt.Sprintf("raw:host.internal:%d", port)}, []string{"host.internal=127.0.0.1"}),
		},
	}
	for _, host := range []string{"host.internal", "localhost", "127.0.0.1"} {
		res := run(t, b, sandbox.Spec{Argv: []string{python, "-c", sendLine, host, strconv.Itoa(int(port))}})
		if res.out != "echo: hello\n" {
			t.Errorf("%s: %q, exit %d, %v", host, res.out, res.ExitCode, res.err)
		}
		if res := run(t, b, sandbox.Spec{Argv: []string{python, "-c", sendLine, host, strconv.Itoa(int(other))}}); strings.Contains(res.out, "echo: hello") {
			t.Errorf("%s: the other port answered: %q", host, res.out)
		}
	}
	if !rec.find(func(e eventtest.Line) bool {
		return e.Host == "host.internal" && e.Decision == "allowed" && e.Port == port
	}) {
		t.Errorf("no event: %+v", rec.events)
	}
}

// freePort is a port of the loopback that nobody listens on just now.
func freePort(t *testing.T) uint16 {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return uint16(ln.Addr().(*net.TCPAddr).Port)
}

// TestPublish reaches a server inside from the host.
func TestPublish(t *testing.T) {
	python := needPython(t)
	port := freePort(t)
	b := &Backend{Publish: []Publish{{Port: port, Inside: 8080}}}
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			var d net.Dialer
			if c, err := d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				c.Write([]byte("hello"))
				c.(*net.TCPConn).CloseWrite()
				if data, _ := io.ReadAll(c); string(data) == "inside: hello" {
					c.Close()
					return
				}
				c.Close()
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C: // the server inside is not up yet
			}
		}
	}()
	server := `import socket
l=socket.create_server(("127.0.0.1",8080)); l.settimeout(8)
while True:
    c,_=l.accept(); d=c.makefile().read()
    if d:
        c.sendall(b"inside: "+d.encode()); c.close(); print("served", d); break`
	res := run(t, b, sandbox.Spec{Argv: []string{python, "-c", server}})
	if res.out != "served hello\n" {
		t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	_, err := (&Backend{Publish: []Publish{{Host: netip.MustParseAddr("0.0.0.0"), Port: port}}}).Run(t.Context(), sandbox.Spec{Argv: []string{"true"}, Dir: "/"})
	if err == nil {
		t.Error("publishing beyond the loopback must be an error")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port = netip.MustParseAddrPort(taken.Addr().String()).Port()
	_, err = (&Backend{Publish: []Publish{{Port: port, Inside: 8080}}}).Run(t.Context(), sandbox.Spec{Argv: []string{"true"}, Dir: "/"})
	if want := fmt.Sprintf("--publish 127.0.0.2:%d", port); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("a port in use: %v, want %s", err, want)
	}
}

// TestThroughTheGate sends one request by each way in.
func TestThroughTheGate(t *testing.T) {
	python := needPython(t)
	port := echoServer(t)
	rec := new(recorder)
	b := &Backend{Gate: gate.Config{Events: rec, Policy: compile(t, []string{fmt.Sprintf("raw:service.example.com:%d", port)}, []string{"service.example.com=127.0.0.1"})}}
	res := run(t, b, sandbox.Spec{Argv: []string{python, "-c", sendLine, "service.example.com", strconv.Itoa(int(port))}})
	if res.out != "echo: hello\n" {
		t.Errorf("captured: %q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	res = run(t, b, sandbox.Spec{Argv: []string{python, "-c", sendLine, "denied.example.com", strconv.Itoa(int(port))}})
	if res.ExitCode == 0 {
		t.Errorf("a denied name: %q", res.out)
	}
	if !rec.find(func(e eventtest.Line) bool {
		return e.Type == "dns.query" && e.Decision == "blocked" && e.Host == "denied.example.com"
	}) {
		t.Errorf("no event for the denied name: %+v", rec.events)
	}
}
