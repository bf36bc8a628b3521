package dnsfilter

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/miekg/dns"
)

// maxReplyBytes bounds one datagram: more than we ask for, since some upstreams do not listen.
const maxReplyBytes = 4096

// exchange puts q to u over the network; had is what it brought over UDP, or nil. A UDP
// answer that was cut, or spells the name otherwise than the question did, is asked again
// over TCP; an upstream that does not know EDNS is asked again without (RFC 6891 section
// 6.2.2).
func (r *Resolver) exchange(ctx context.Context, u Upstream, q *dns.Msg, had *reply) (*dns.Msg, error) {
	m, err := r.exchangeOnce(ctx, u, q, had)
	if err == nil && q.IsEdns0() != nil && (m.Rcode == dns.RcodeFormatError || m.Rcode == dns.RcodeNotImplemented) {
		plain := q.Copy()
		plain.Id, plain.Extra = dns.Id(), nil
		return r.exchangeOnce(ctx, u, plain, nil)
	}
	return m, err
}

func (r *Resolver) exchangeOnce(ctx context.Context, u Upstream, q *dns.Msg, had *reply) (*dns.Msg, error) {
	if u.transport != "udp" {
		return r.over(ctx, u, u.transport, q)
	}
	if had == nil {
		wire, err := q.Pack()
		if err != nil {
			return nil, err
		}
		got := r.lines.ask(ctx, u.addr, wire)
		had = &got
	}
	m, whole, err := had.message(q)
	if errors.Is(err, errGuessed) || err == nil && !whole {
		return r.over(ctx, u, "tcp", q)
	}
	return m, err
}

// message reads a reply to q. whole is false when it was cut, or is not spelled as the
// question: then it is not used.
func (a *reply) message(q *dns.Msg) (m *dns.Msg, whole bool, err error) {
	if a.err != nil {
		return nil, false, a.err
	}
	m = new(dns.Msg)
	if err := m.Unpack(a.wire); err != nil {
		return nil, false, err
	}
	m.Id = q.Id
	if !answers(m, q) {
		return nil, false, errMismatch
	}
	return m, a.spelled && !m.Truncated, nil
}

// over asks once over TCP or TLS, on a connection of its own.
func (r *Resolver) over(ctx context.Context, u Upstream, transport string, q *dns.Msg) (*dns.Msg, error) {
	c, err := r.dial(ctx, u, transport)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if d, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(d); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn := &dns.Conn{Conn: c}
	if err := conn.WriteMsg(q); err != nil {
		return nil, err
	}
	m, err := conn.ReadMsg()
	if err == nil && !answers(m, q) {
		err = errMismatch
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// answers reports whether m is an answer to exactly the question of q.
func answers(m, q *dns.Msg) bool {
	if !m.Response || m.Id != q.Id || m.Opcode != dns.OpcodeQuery || len(m.Question) != 1 {
		return false
	}
	a, b := m.Question[0], q.Question[0]
	return a.Qtype == b.Qtype && a.Qclass == b.Qclass && dns.CanonicalName(a.Name) == dns.CanonicalName(b.Name)
}

// dial connects to u over TCP. tls verifies the certificate for the upstream's name, or
// for its address if no name was given (RFC 8310 section 8.1).
func (r *Resolver) dial(ctx context.Context, u Upstream, transport string) (net.Conn, error) {
	var d net.Dialer
	if transport != "tls" {
		return d.DialContext(ctx, "tcp", u.addr.String())
	}
	name := u.name
	if name == "" {
		name = u.addr.Addr().WithZone("").String()
	}
	td := tls.Dialer{NetDialer: &d, Config: &tls.Config{
		ServerName: name,
		RootCAs:    r.RootCAs,
		MinVersion: tls.VersionTLS12,
	}}
	c, err := td.DialContext(ctx, "tcp", u.addr.String())
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return c, nil
}
