package dnsfilter

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"egressd/policy"
)

func TestQueryIsBuiltFromScratch(t *testing.T) {
	up := startUpstream(t, zone("a.test. 60 IN A 192.0.2.1"))
	r := &Resolver{Upstreams: []Upstream{up.Upstream}}
	if got, err := lookup(t, r, "A.Test"); !slices.Equal(got, []string{"192.0.2.1"}) {
		t.Fatalf("%v, %v", got, err)
	}
	ids := map[uint16]bool{}
	for _, q := range up.seen() {
		ids[q.Id] = true
		opt := q.IsEdns0()
		if !q.RecursionDesired || q.CheckingDisabled || len(q.Question) != 1 || !strings.EqualFold(q.Question[0].Name, "a.test.") ||
			opt == nil || opt.UDPSize() != ourUDPBytes || len(opt.Option) != 0 || len(q.Extra) != 1 {
			t.Errorf("the upstream saw %v", q)
		}
	}
	if len(up.seen()) != 2 || len(ids) != 2 {
		t.Errorf("%d questions with %d ids, want two of each", len(up.seen()), len(ids))
	}
}

func TestTruncatedIsAskedOverTCP(t *testing.T) {
	z := zone("a.test. 60 IN A 192.0.2.1")
	up := startUpstream(t, func(network string, q *dns.Msg) *dns.Msg {
		m := z(network, q)
		if network == "udp" {
			m.Truncated, m.Answer = true, nil
		}
		return m
	})
	r := &Resolver{Upstreams: []Upstream{up.Upstream}}
	if got, err := lookup(t, r, "a.test"); len(got) != 1 || up.tcp.Load() != 2 {
		t.Errorf("%v, %v, %d over TCP", got, err, up.tcp.Load())
	}
}

func TestTCPUpstream(t *testing.T) {
	up := startUpstream(t, zone("a.test. 60 IN A 192.0.2.1"))
	u, err := ParseUpstream("tcp://" + up.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	r := &Resolver{Upstreams: []Upstream{u}}
	if got, err := lookup(t, r, "a.test"); len(got) != 1 || up.udp.Load() != 0 {
		t.Errorf("%v, %v, %d over UDP", got, err, up.udp.Load())
	}
}

func TestUpstreamWithoutEDNS(t *testing.T) {
	z := zone("a.test. 60 IN A 192.0.2.1")
	up := startUpstream(t, func(network string, q *dns.Msg) *dns.Msg {
		if q.IsEdns0() != nil {
			return new(dns.Msg).SetRcode(q, dns.RcodeFormatError)
		}
		return z(network, q)
	})
	r := &Resolver{Upstreams: []Upstream{up.Upstream}}
	if got, err := lookup(t, r, "a.test"); len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestPoison puts forged datagrams before the true answer, on the very socket
// of the upstream; each would be believed but for one check.
func TestPoison(t *testing.T) {
	forge := func(q *dns.Msg, change func(*dns.Msg)) *dns.Msg {
		m := new(dns.Msg).SetReply(q)
		rr, _ := dns.NewRR("a.test. 60 IN A 203.0.113.66")
		m.Answer = []dns.RR{rr}
		change(m)
		return m
	}
	tests := []struct {
		name   string
		change func(*dns.Msg)
	}{
		{"wrong id", func(m *dns.Msg) { m.Id++ }},
		{"a query", func(m *dns.Msg) { m.Response = false }},
		{"another name", func(m *dns.Msg) { m.Question[0].Name = "b.test." }},
		{"another type", func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeTXT }},
		{"another class", func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }},
		{"no question", func(m *dns.Msg) { m.Question = nil }},
		{"two questions", func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }},
		{"opcode", func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }},
	}
	z := zone("a.test. 60 IN A 192.0.2.1")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pc, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			stop := answerAll(pc, func(q *dns.Msg) []*dns.Msg { return []*dns.Msg{forge(q, tt.change), z("udp", q)} })
			defer stop()
			u, _ := ParseUpstream(pc.LocalAddr().String())
			r := &Resolver{Upstreams: []Upstream{u}}
			if got, err := lookup(t, r, "a.test"); !slices.Equal(got, []string{"192.0.2.1"}) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestWrongSource answers from another socket: the kernel drops it.
func TestWrongSource(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	forged, z := zone("a.test. 60 IN A 203.0.113.66"), zone("a.test. 60 IN A 192.0.2.1")
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			q := new(dns.Msg)
			_ = q.Unpack(buf[:n])
			bad, _ := forged("udp", q).Pack()
			_, _ = other.WriteTo(bad, from)
			good, _ := z("udp", q).Pack()
			_, _ = pc.WriteTo(good, from)
		}
	}()
	defer func() { _ = pc.Close(); <-done }()
	u, _ := ParseUpstream(pc.LocalAddr().String())
	r := &Resolver{Upstreams: []Upstream{u}}
	if got, err := lookup(t, r, "a.test"); !slices.Equal(got, []string{"192.0.2.1"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// answerAll replies to each query on pc with all of what reply says.
func answerAll(pc net.PacketConn, reply func(*dns.Msg) []*dns.Msg) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			q := new(dns.Msg)
			if q.Unpack(buf[:n]) != nil {
				continue
			}
			_, _ = pc.WriteTo([]byte("not DNS"), from)
			for _, m := range reply(q) {
				b, _ := m.Pack()
				_, _ = pc.WriteTo(b, from)
			}
		}
	}()
	return func() { _ = pc.Close(); <-done }
}

// TestSilentAndClosedUpstreams fails over on the network, too.
func TestSilentAndClosedUpstreams(t *testing.T) {
	pc, ln := listen(t)
	_ = pc.Close() // nobody there: ICMP port unreachable
	_ = ln.Close()
	closed, _ := ParseUpstream(pc.LocalAddr().String())
	closedTCP, _ := ParseUpstream("tcp://" + pc.LocalAddr().String())
	up := startUpstream(t, zone("a.test. 60 IN A 192.0.2.1"))
	var log syncBuffer
	r := &Resolver{Upstreams: []Upstream{closed, closedTCP, up.Upstream}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	if got, err := lookup(t, r, "a.test"); len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	// Nobody waited for those that are closed.
	if n := strings.Count(log.String(), "connection refused"); n != 2 {
		t.Errorf("%d upstreams refused: %s", n, log.String())
	}
	r = &Resolver{Upstreams: []Upstream{closed}}
	_, err := lookup(t, r, "a.test")
	checkReason(t, err, policy.ReasonDNSError)

	silent := startUpstream(t, func(string, *dns.Msg) *dns.Msg { return nil })
	r = &Resolver{Upstreams: []Upstream{silent.Upstream}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err = r.Lookup(ctx, host(t, "a.test"))
	checkReason(t, err, policy.ReasonDNSTimeout)
	if took := time.Since(begin); took > tryTimeout/2 {
		t.Errorf("giving up took %v: the socket was not woken", took)
	}
}

func TestDoT(t *testing.T) {
	cert, pool := testCertificate(t, "dns.example", "127.0.0.1")
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	z := zone("a.test. 60 IN A 192.0.2.1")
	started, done := make(chan struct{}), make(chan struct{})
	srv := &dns.Server{
		Listener: ln, NotifyStartedFunc: func() { close(started) },
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(z("tcp", q)) }),
	}
	go func() { defer close(done); _ = srv.ActivateAndServe() }()
	<-started
	defer func() { _ = srv.Shutdown(); <-done }()

	at := ln.Addr().String()
	tests := []struct {
		upstream string
		pool     *x509.CertPool
		ok       bool
	}{
		{"tls://dns.example@" + at, pool, true},
		{"tls://" + at, pool, true}, // the certificate names the address, too
		{"tls://other.example@" + at, pool, false},
		{"tls://dns.example@" + at, nil, false}, // not a public CA
		{"tls://dns.example@" + at, x509.NewCertPool(), false},
	}
	for _, tt := range tests {
		u, err := ParseUpstream(tt.upstream)
		if err != nil {
			t.Fatal(err)
		}
		r := &Resolver{Upstreams: []Upstream{u}, RootCAs: tt.pool}
		got, err := lookup(t, r, "a.test")
		if (len(got) == 1) != tt.ok {
			t.Errorf("%s: %v, %v", tt.upstream, got, err)
		}
		if !tt.ok && !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", tt.upstream, err)
		}
	}
}

// testCertificate is self-signed for name and addr.
func testCertificate(t *testing.T, name, addr string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IPAddresses: []net.IP{net.ParseIP(addr)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
