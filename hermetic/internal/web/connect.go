package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// trust is whom TLS believes. Certificates are verified always: insecure changes
// only what a failure says.
type trust struct {
	roots    *x509.CertPool
	minimum  uint16 // versions of TLS; 0: what crypto/tls says
	maximum  uint16
	insecure bool
}

// newTrust believes roots. With own, which a script names, it believes these
// instead, and the authority of the session's gate, without which nothing that
// is intercepted could be reached.
func newTrust(roots, own []byte) (*trust, bool) {
	t := &trust{roots: x509.NewCertPool()}
	if own == nil {
		t.roots.AppendCertsFromPEM(roots)
		return t, true
	}
	for len(roots) > 0 {
		block, rest := pem.Decode(roots)
		if block == nil {
			break
		}
		roots = rest
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && cert.Subject.CommonName == gateCA {
			t.roots.AddCert(cert)
		}
	}
	return t, t.roots.AppendCertsFromPEM(own)
}

// open connects to the gate, and through it to the origin for https.
func (c *call) open(ctx context.Context, a *answer) (net.Conn, *failure) {
	if c.connect > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, c.connect, errConnect)
		defer cancel()
		ctx = limited
	}
	conn, err := c.dial(ctx)
	if err != nil {
		if f := timedOut(ctx, c.clock, 0); f != nil {
			return nil, f
		}
		return nil, fail(exitConnect, "Failed to connect to %s port %d: the session's gate cannot be reached: %v", c.to.host, c.to.port, err)
	}
	a.raw, a.conn = conn, &link{Conn: conn}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	f := c.secure(ctx, a)
	if !stop() && f == nil {
		f = timedOut(ctx, c.clock, 0)
	}
	if f != nil {
		_ = conn.Close()
		return nil, f
	}
	c.note('*', fmt.Sprintf("Connected to %s port %d through the session's gate", c.to.host, c.to.port))
	return a.conn, nil
}

// secure makes the tunnel and the TLS in it that https needs.
func (c *call) secure(ctx context.Context, a *answer) *failure {
	a.connected = c.clock.elapsed()
	if c.to.scheme != "https" {
		return nil
	}
	if f := c.tunnel(ctx, a); f != nil {
		return f
	}
	a.connected = c.clock.elapsed()
	conn := tls.Client(a.conn, &tls.Config{
		RootCAs: c.trust.roots, ServerName: c.to.host, NextProtos: []string{"http/1.1"},
		MinVersion: c.trust.minimum, MaxVersion: c.trust.maximum,
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		return c.handshakeFailed(ctx, err)
	}
	state := conn.ConnectionState()
	a.byGate = byGate(state.VerifiedChains)
	a.conn, a.secured = &link{Conn: conn}, c.clock.elapsed()
	c.note('*', fmt.Sprintf("SSL connection using %s / %s", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite)))
	leaf := state.PeerCertificates[0]
	c.note('*', fmt.Sprintf(" subject: %s", leaf.Subject))
	c.note('*', fmt.Sprintf(" issuer: %s", leaf.Issuer))
	c.note('*', " SSL certificate verify ok.")
	return nil
}

// tunnel is CONNECT (RFC 9110 section 9.3.6). It reads no byte past the answer's
// head where the tunnel stands.
func (c *call) tunnel(ctx context.Context, a *answer) *failure {
	at := c.to.hostPort()
	if _, err := fmt.Fprintf(a.conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", at, at); err != nil {
		return receiving(ctx, c.clock, err, 0)
	}
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); {
		if len(head) > gateMax {
			return fail(exitReceive, "Too large response headers: %d > %d", len(head), gateMax)
		}
		n, err := a.conn.Read(one)
		if head = append(head, one[:n]...); err != nil && n == 0 {
			if f := timedOut(ctx, c.clock, 0); f != nil {
				return f
			}
			return fail(exitReceive, "Proxy CONNECT aborted")
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(head), a.conn)), &http.Request{Method: http.MethodGet})
	if err != nil {
		return fail(exitReceive, "Proxy CONNECT aborted")
	}
	if resp.StatusCode/100 == 2 {
		return nil
	}
	if fromGate(resp.Header, c.to, "") == nil {
		return fail(exitReceive, "CONNECT tunnel failed, response %d", resp.StatusCode)
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, gateMax)) // without it there is less to say
	return fromGate(resp.Header, c.to, string(text)).failure(c.to, c.method, resp.StatusCode)
}

func (c *call) handshakeFailed(ctx context.Context, err error) *failure {
	if f := timedOut(ctx, c.clock, 0); f != nil {
		return f
	}
	var (
		host    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		f       *failure
	)
	switch {
	case errors.As(err, &host):
		f = fail(exitVerify, "SSL: no alternative certificate subject name matches target host name '%s'", c.to.host)
	case errors.As(err, &unknown):
		f = fail(exitVerify, "SSL certificate problem: unable to get local issuer certificate")
		if unknown.Cert != nil && bytes.Equal(unknown.Cert.RawIssuer, unknown.Cert.RawSubject) {
			f.text = "SSL certificate problem: self-signed certificate"
		}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		f = fail(exitVerify, "SSL certificate problem: certificate has expired")
	case errors.As(err, &verify):
		f = fail(exitVerify, "SSL certificate problem: %v", verify.Err)
	case errors.As(err, &record):
		return fail(exitTLS, "OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fail(exitTLS, "SSL_connect: SSL_ERROR_SYSCALL in connection to %s ", c.to.hostPort())
	default:
		return fail(exitTLS, "SSL connect error: %v", err)
	}
	if c.trust.insecure {
		f.text += " (certificates are verified always here; nothing turns that off)"
	}
	return f
}
