//go:build system

package docs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// dnsAddress is the world's resolver. As every address it is the world's own.
const dnsAddress = "9.9.9.9"

// Ports where the world's origins wait, on every address.
var (
	tlsPorts   = []string{"443", "8443"}
	plainPorts = []string{"80", "8000", "11434"}
	echoPorts  = []string{"22", "5432", "6379"}
)

// origins answer for every name there is: DNS, TLS with a certificate for the
// name that was asked for, HTTP, and an echo elsewhere.
type origins struct {
	ca    *x509.Certificate
	caKey *ecdsa.PrivateKey
	leaf  *ecdsa.PrivateKey
	caPEM string

	closers []io.Closer
	dns     []*dns.Server
	wg      sync.WaitGroup
}

func newOrigins() (*origins, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the pages' world"},
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
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &origins{ca: ca, caKey: key, leaf: leaf, caPEM: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}, nil
}

// listen opens everything, on all addresses.
func (o *origins) listen() error {
	secure := &tls.Config{
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return o.certificate(h.ServerName) },
		NextProtos:     []string{"h2", "http/1.1"},
	}
	for _, port := range tlsPorts {
		ln, err := net.Listen("tcp", "[::]:"+port)
		if err != nil {
			return err
		}
		o.serveHTTP(tls.NewListener(ln, secure))
	}
	for _, port := range plainPorts {
		ln, err := net.Listen("tcp", "[::]:"+port)
		if err != nil {
			return err
		}
		o.serveHTTP(ln)
	}
	for _, port := range echoPorts {
		ln, err := net.Listen("tcp", "[::]:"+port)
		if err != nil {
			return err
		}
		o.closers = append(o.closers, ln)
		o.wg.Go(func() { o.echo(ln) })
	}
	return o.serveDNS()
}

func (o *origins) serveHTTP(ln net.Listener) {
	srv := &http.Server{Handler: http.HandlerFunc(answer), ErrorLog: log.New(io.Discard, "", 0)}
	o.closers = append(o.closers, srv)
	o.wg.Go(func() { _ = srv.Serve(ln) }) // ends with close
}

// answer is every origin's page. /drip?seconds=N sends a line a tenth of a
// second.
func answer(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	n, _ := strconv.Atoi(r.URL.Query().Get("seconds")) // zero: one line
	for i := range min(n, 60)*10 + 1 {
		if i > 0 {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		if _, err := fmt.Fprintf(w, "hello from %s\n", host); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush() // the write above tells
	}
}

func (o *origins) echo(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() { // ends with the world's process
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // a dead connection fails in the copy
			_, _ = io.Copy(c, c)                                // the client decides
		}()
	}
}

func (o *origins) certificate(name string) (*tls.Certificate, error) {
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "origin"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
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

// serveDNS answers at dnsAddress, and at the loopback address that some hosts
// name as their resolver.
func (o *origins) serveDNS() error {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) }) // the bind tells
	}}
	pc, err := lc.ListenPacket(context.Background(), "udp4", dnsAddress+":53")
	if err != nil {
		return err
	}
	ln, err := lc.Listen(context.Background(), "tcp4", dnsAddress+":53")
	if err != nil {
		return err
	}
	for _, s := range []*dns.Server{{PacketConn: pc, Handler: dns.HandlerFunc(resolve)}, {Listener: ln, Handler: dns.HandlerFunc(resolve)}} {
		o.dns = append(o.dns, s)
		o.wg.Go(func() { _ = s.ActivateAndServe() }) // ends with close
	}
	return nil
}

// resolve gives each name a public address of its own; .invalid does not exist.
func resolve(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg)
	m.SetReply(q)
	name := strings.ToLower(q.Question[0].Name)
	switch {
	case strings.HasSuffix(name, ".invalid."):
		m.Rcode = dns.RcodeNameError
	case q.Question[0].Qtype == dns.TypeA:
		h := fnv.New32a()
		_, _ = io.WriteString(h, name) // never fails
		sum := h.Sum32()
		m.Answer = []dns.RR{&dns.A{
			Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60},
			A:   net.IPv4(93, 184, byte(sum>>8), byte(sum)|1),
		}}
	}
	_ = w.WriteMsg(m) // the client asks again
}

func (o *origins) close() {
	for _, c := range o.closers {
		_ = c.Close() // the process ends now
	}
	for _, s := range o.dns {
		_ = s.Shutdown() // as above
	}
	o.wg.Wait()
}
