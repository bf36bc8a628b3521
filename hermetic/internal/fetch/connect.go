package fetch

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

// Trust is whom TLS believes. Certificates are verified always: insecure changes
// only what a failure says.
type Trust struct {
	roots    *x509.CertPool
	Minimum  uint16 // versions of TLS; 0: what crypto/tls says
	Maximum  uint16
	Insecure bool
}

// NewTrust believes roots. With own, which a script names, it believes these
// instead, and the authority of the session's gate, without which nothing that
// is intercepted could be reached.
func NewTrust(roots, own []byte) (*Trust, bool) {
	t := &Trust{roots: x509.NewCertPool()}
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
func (c *Call) open(ctx context.Context, a *Answer) (net.Conn, *Failure) {
	if c.Connect > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, c.Connect, errConnect)
		defer cancel()
		ctx = limited
	}
	conn, err := c.Dial(ctx)
	if err != nil {
		if f := TimedOut(ctx, c.Clock, 0); f != nil {
			return nil, f
		}
		return nil, Fail(ExitConnect, "Failed to connect to %s port %d: the session's gate cannot be reached: %v", c.To.Host, c.To.Port, err)
	}
	a.raw, a.conn = conn, &link{Conn: conn}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	f := c.secure(ctx, a)
	if !stop() && f == nil {
		f = TimedOut(ctx, c.Clock, 0)
	}
	if f != nil {
		_ = conn.Close()
		return nil, f
	}
	c.Note('*', fmt.Sprintf("Connected to %s port %d through the session's gate", c.To.Host, c.To.Port))
	return a.conn, nil
}

// secure makes the tunnel and the TLS in it that https needs.
func (c *Call) secure(ctx context.Context, a *Answer) *Failure {
	a.Connected = c.Clock.Elapsed()
	if c.To.Scheme != "https" {
		return nil
	}
	if f := c.tunnel(ctx, a); f != nil {
		return f
	}
	a.Connected = c.Clock.Elapsed()
	conn := tls.Client(a.conn, &tls.Config{
		RootCAs: c.Trust.roots, ServerName: c.To.Host, NextProtos: []string{"http/1.1"},
		MinVersion: c.Trust.Minimum, MaxVersion: c.Trust.Maximum,
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		return c.handshakeFailed(ctx, err)
	}
	state := conn.ConnectionState()
	a.byGate = byGate(state.VerifiedChains)
	a.conn, a.Secured = &link{Conn: conn}, c.Clock.Elapsed()
	c.Note('*', fmt.Sprintf("SSL connection using %s / %s", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite)))
	leaf := state.PeerCertificates[0]
	c.Note('*', fmt.Sprintf(" subject: %s", leaf.Subject))
	c.Note('*', fmt.Sprintf(" issuer: %s", leaf.Issuer))
	c.Note('*', " SSL certificate verify ok.")
	return nil
}

// tunnel is CONNECT (RFC 9110 section 9.3.6). It reads no byte past the answer's
// head where the tunnel stands.
func (c *Call) tunnel(ctx context.Context, a *Answer) *Failure {
	at := c.To.hostPort()
	if _, err := fmt.Fprintf(a.conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", at, at); err != nil {
		return receiving(ctx, c.Clock, err, 0)
	}
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); {
		if len(head) > gateMax {
			return Fail(ExitReceive, "Too large response headers: %d > %d", len(head), gateMax)
		}
		n, err := a.conn.Read(one)
		if head = append(head, one[:n]...); err != nil && n == 0 {
			if f := TimedOut(ctx, c.Clock, 0); f != nil {
				return f
			}
			return Fail(ExitReceive, "Proxy CONNECT aborted")
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(bytes.NewReader(head), a.conn)), &http.Request{Method: http.MethodGet})
	if err != nil {
		return Fail(ExitReceive, "Proxy CONNECT aborted")
	}
	if resp.StatusCode/100 == 2 {
		return nil
	}
	if fromGate(resp.Header, c.To, "") == nil {
		return Fail(ExitReceive, "CONNECT tunnel failed, response %d", resp.StatusCode)
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, gateMax)) // without it there is less to say
	return fromGate(resp.Header, c.To, string(text)).failure(c.To, c.Method, resp.StatusCode)
}

func (c *Call) handshakeFailed(ctx context.Context, err error) *Failure {
	if f := TimedOut(ctx, c.Clock, 0); f != nil {
		return f
	}
	var (
		host    x509.HostnameError
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		f       *Failure
	)
	switch {
	case errors.As(err, &host):
		f = Fail(ExitVerify, "SSL: no alternative certificate subject name matches target host name '%s'", c.To.Host)
	case errors.As(err, &unknown):
		f = Fail(ExitVerify, "SSL certificate problem: unable to get local issuer certificate")
		if unknown.Cert != nil && bytes.Equal(unknown.Cert.RawIssuer, unknown.Cert.RawSubject) {
			f.Text = "SSL certificate problem: self-signed certificate"
		}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		f = Fail(ExitVerify, "SSL certificate problem: certificate has expired")
	case errors.As(err, &verify):
		f = Fail(ExitVerify, "SSL certificate problem: %v", verify.Err)
	case errors.As(err, &record):
		return Fail(ExitTLS, "OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return Fail(ExitTLS, "SSL_connect: SSL_ERROR_SYSCALL in connection to %s ", c.To.hostPort())
	default:
		return Fail(ExitTLS, "SSL connect error: %v", err)
	}
	if c.Trust.Insecure {
		f.Text += " (certificates are verified always here; nothing turns that off)"
	}
	return f
}
