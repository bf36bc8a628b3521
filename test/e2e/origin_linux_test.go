package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"egressd/test/e2e/job"
)

const resetPort = 9418 // whoever says something here gets a reset

// visit is one thing that arrived at a canary.
type visit struct {
	Addr  netip.AddrPort // the canary's address, as dialled
	SNI   string
	Host  string // of an HTTP request
	Path  string
	Bytes string // first bytes of anything else
}

// origins are the TCP canaries: each speaks TLS, HTTP or an echo, as the
// client's first byte asks, and remembers who came.
type origins struct {
	mu     sync.Mutex
	visits []visit
	conns  map[net.Conn]bool
	closed bool

	ca     *x509.Certificate
	caKey  *ecdsa.PrivateKey
	caFile string
	leaf   *ecdsa.PrivateKey
}

func newOrigins(base string) (*origins, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "e2e world"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	o := &origins{conns: map[net.Conn]bool{}, ca: ca, caKey: key, caFile: filepath.Join(base, "world-ca.pem")}
	if o.leaf, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	return o, os.WriteFile(o.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func (o *origins) mark() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.visits)
}

func (o *origins) since(mark int) []visit {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]visit(nil), o.visits[mark:]...)
}

func (o *origins) note(v visit) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.visits = append(o.visits, v)
}

func (o *origins) hold(c net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.conns[c] = true
	return true
}

func (o *origins) release(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.conns, c)
	_ = c.Close()
}

func (o *origins) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for c := range o.conns {
		_ = c.Close()
	}
}

func (o *origins) serve(ln net.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		if !o.hold(c) {
			_ = c.Close()
			return
		}
		wg.Go(func() { o.handle(c) })
	}
}

func (o *origins) handle(c net.Conn) {
	defer o.release(c)
	_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // a closed connection fails in the read
	ap := c.LocalAddr().(*net.TCPAddr).AddrPort()
	at := netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	if at.Port() == resetPort {
		_ = c.(*net.TCPConn).SetLinger(0) // the end is a reset
		_, _ = c.Read(make([]byte, 1))
		return
	}
	if at.Port() == 22 {
		_, _ = io.WriteString(c, "SSH-2.0-"+job.Marker+"\r\n") // the client may be gone
	}
	br := bufio.NewReader(c)
	head, err := br.Peek(1)
	if err != nil {
		o.note(visit{Addr: at})
		return
	}
	switch {
	case head[0] == 22:
		o.handleTLS(readAhead{c, br}, at)
	case head[0] >= 'A' && head[0] <= 'Z' && at.Port() != 22:
		if word, _ := br.Peek(5); len(word) == 5 && (string(word[:4]) == "GET " || string(word) == "POST " || string(word) == "HEAD " || string(word) == "PUT /") {
			o.handleHTTP(c, br, at, "")
			return
		}
		fallthrough
	default:
		buf := make([]byte, 256)
		n, _ := br.Read(buf)
		o.note(visit{Addr: at, Bytes: string(buf[:n])})
		_, _ = io.WriteString(c, job.Marker+"\n") // the client may be gone
	}
}

func (o *origins) handleTLS(c net.Conn, at netip.AddrPort) {
	v := visit{Addr: at}
	conn := tls.Server(c, &tls.Config{
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			v.SNI = h.ServerName
			return o.certificate(h.ServerName, at.Addr())
		},
		NextProtos: []string{"http/1.1"},
	})
	err := conn.Handshake()
	o.note(v)
	if err == nil {
		o.handleHTTP(conn, bufio.NewReader(conn), at, v.SNI)
	}
}

// handleHTTP answers requests until the client stops; each is a visit, so that
// a smuggled second request shows.
func (o *origins) handleHTTP(c net.Conn, br *bufio.Reader, at netip.AddrPort, sni string) {
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		o.note(visit{Addr: at, SNI: sni, Host: req.Host, Path: req.RequestURI})
		_, _ = io.Copy(io.Discard, io.LimitReader(req.Body, 1<<20)) // a short body shows in the next request
		body := fmt.Sprintf("%s %s %s\n", job.Marker, req.Host, req.RequestURI)
		end := "keep-alive"
		if req.Close {
			end = "close"
		}
		_, err = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n%s", len(body), end, body)
		if err != nil || req.Close {
			return
		}
	}
}

// certificate signs one for the name (or address) with the world's CA.
func (o *origins) certificate(name string, addr netip.Addr) (*tls.Certificate, error) {
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "canary"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{addr.AsSlice()}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if name != "" {
		tmpl.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, o.ca, &o.leaf.PublicKey, o.caKey)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, o.ca.Raw}, PrivateKey: o.leaf}, nil
}

type readAhead struct {
	net.Conn
	br *bufio.Reader
}

func (r readAhead) Read(p []byte) (int, error) { return r.br.Read(p) }
