package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"egressd/event"
	"egressd/proxy/internal/peek"
)

// helloBytes is the ClientHello of a client that wants name.
func helloBytes(t *testing.T, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go func() { _ = handshake(a, name) }()
	buf := make([]byte, 4096)
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

// helloRetryRequest is the record of a server that wants a second hello.
var helloRetryRequest = append([]byte{
	22, 3, 3, 0, 44, 2, 0, 0, 40, 3, 3,
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
},
	0, 0x13, 1, 0, 0, 0)

// TestSecondHelloForAnotherHost names the judged host in the first ClientHello
// and another one in the second, which a HelloRetryRequest asks for. Nothing of
// the second may arrive.
func TestSecondHelloForAnotherHost(t *testing.T) {
	first, second := helloBytes(t, "a.example"), helloBytes(t, "evil.example")
	var inPieces []byte // one byte of the handshake a record
	for _, b := range second[5:] {
		inPieces = append(inPieces, 22, 3, 3, 0, 1, b)
	}
	changeCipherSpec, earlyData := []byte{20, 3, 3, 0, 1, 1}, []byte{23, 3, 3, 0, 3, 1, 2, 3}
	for _, port := range []uint16{443, 8443} {
		for _, tt := range []struct {
			name         string
			with, behind [][]byte // sent with the first hello, and after the retry
		}{
			{"alone", nil, [][]byte{second}},
			{"behind change_cipher_spec", nil, [][]byte{changeCipherSpec, second}},
			{"behind early data", [][]byte{earlyData, earlyData}, [][]byte{changeCipherSpec, second}},
			{"before it is asked for", [][]byte{changeCipherSpec, second}, nil},
			{"a record a byte", nil, [][]byte{inPieces}},
		} {
			t.Run(itoa(port)+" "+tt.name, func(t *testing.T) {
				arrived := make(chan []byte, 1)
				g := newGate(t, "a.example:443,8443").start()
				g.name("a.example", port, serveOrigin(t, func(c net.Conn) {
					_, _ = io.ReadFull(c, make([]byte, len(first)))
					_, _ = c.Write(helloRetryRequest)
					b, _ := io.ReadAll(c)
					arrived <- b
				}))
				c, err := openConnect(g, "a.example", port)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = c.Write(slices.Concat(first, slices.Concat(tt.with...)))
				if tt.behind != nil {
					if _, err := io.ReadFull(c, make([]byte, len(helloRetryRequest))); err != nil {
						t.Fatal(err)
					}
				}
				_, _ = c.Write(slices.Concat(tt.behind...))
				if b, _ := io.ReadAll(c); !bytes.HasSuffix(b, accessDenied[:]) {
					t.Errorf("the client got %x, want an access_denied alert", b)
				}
				if b := <-arrived; bytes.Contains(b, []byte{22, 3}) || bytes.Contains(b, []byte("evil")) {
					t.Errorf("the origin got %q", b)
				}
				if d := g.decision(2); d.Reason != "sni_mismatch" || d.Server != "evil.example" {
					t.Errorf("%+v", d)
				}
			})
		}
	}
}

// TestHandshakesGoOn holds ordinary handshakes, one that retries among them, to
// arriving whole.
func TestHandshakesGoOn(t *testing.T) {
	for name, conf := range map[string]*tls.Config{
		"TLS 1.3":          {},
		"with a retry":     {CurvePreferences: []tls.CurveID{tls.CurveP384}},
		"TLS 1.2":          {MaxVersion: tls.VersionTLS12},
		"client in charge": {ClientAuth: tls.RequestClientCert, MaxVersion: tls.VersionTLS12},
	} {
		for _, port := range []uint16{443, 8443} {
			t.Run(name+" "+itoa(port), func(t *testing.T) {
				server := conf.Clone()
				server.Certificates = []tls.Certificate{testCert()}
				g := newGate(t, "a.example:443,8443").start()
				g.name("a.example", port, serveOrigin(t, func(c net.Conn) {
					s := tls.Server(c, server)
					_, _ = io.Copy(s, s)
					_ = s.Close()
				}))
				cache := tls.NewLRUClientSessionCache(1) // the second connection resumes
				for range 2 {
					c, err := openConnect(g, "a.example", port)
					if err != nil {
						t.Fatal(err)
					}
					s := tls.Client(oneByte{c}, &tls.Config{ServerName: "a.example", InsecureSkipVerify: true, ClientSessionCache: cache})
					_ = s.SetDeadline(time.Now().Add(10 * time.Second))
					_, _ = io.WriteString(s, strings.Repeat("x", 100000))
					_ = s.CloseWrite()
					if b, err := io.ReadAll(s); len(b) != 100000 || err != nil {
						t.Errorf("%d bytes came back, %v", len(b), err)
					}
				}
			})
		}
	}
}

// TestHelloThatDripsIn sends half a ClientHello with the CONNECT and then a
// byte now and then: the time for it runs from the first byte.
func TestHelloThatDripsIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, "a.example:8443")
		g.answer("a.example", mustAddr("93.184.216.34"))
		up, origin := net.Pipe()
		g.dialFunc = func(context.Context, *net.Dialer, string, string) (net.Conn, error) { return up, nil }
		ours, theirs := net.Pipe()
		start, helloTimeout := time.Now(), g.bounds().helloTimeout
		var client sync.WaitGroup
		client.Go(func() {
			_, err := io.WriteString(ours, "CONNECT a.example:8443 HTTP/1.1\r\n\r\n\x16\x03\x01\x10\x00\x01")
			for err == nil {
				time.Sleep(time.Second)
				_, err = io.WriteString(ours, "a")
			}
		})
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		explicit{}.serve(context.Background(), newConn(g.Server, theirs, event.DoorHTTP)).carryAndWait()
		if d := time.Since(start); d < helloTimeout || d > helloTimeout+2*peek.LingerTimeout {
			t.Errorf("took %v", d)
		}
		_ = theirs.Close()
		_ = ours.Close()
		_ = origin.Close()
		client.Wait()
	})
}
