package proxy

import (
	"context"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/wire"
)

// SOCKS5 reply codes (RFC 1928 section 6).
const (
	socksGeneral     = 1
	socksNotAllowed  = 2
	socksNetwork     = 3
	socksHost        = 4
	socksRefused     = 5
	socksNoCommand   = 7
	socks4Granted    = 90
	socks4Rejected   = 91
	socksMessageMax  = 1 << 10 // no message of RFC 1928 or 1929 is longer than 515 bytes
	socks5ReplyBytes = 10
)

// socksReply reports the SOCKS5 reply for a reason.
func socksReply(r policy.Reason) byte {
	switch r {
	case policy.ReasonProtocol:
		return socksNoCommand
	case policy.ReasonRefused:
		return socksRefused
	case policy.ReasonUnreachable:
		return socksNetwork
	case policy.ReasonHeadTimeout:
		return socksGeneral // the client was slow, not the way
	}
	switch r.Class() {
	case policy.ClassDenied:
		return socksNotAllowed
	case policy.ClassUpstream, policy.ClassTimeout:
		return socksHost
	case policy.ClassNone, policy.ClassMalformed, policy.ClassOverload, policy.ClassBug:
	}
	return socksGeneral
}

// socks5 serves one SOCKS5 connection (RFC 1928). Where the gate serves several
// policies, the user name of RFC 1929 is the token; elsewhere any user name and
// password is taken and ignored.
func (s *Server) socks5(ctx context.Context, c *conn) {
	f := s.newSocksFlow(ctx, c, event.DoorSOCKS5)
	method, ok := f.socks5Greeting()
	if !ok {
		return
	}
	if method == wire.MethodPassword && !f.socks5Password() {
		return
	}
	f.socksRequest(wire.Socks5Request, "the SOCKS5 request cannot be read")
}

// socks5Greeting agrees on a method. Who needs to know the client asks for its
// password where it has one to offer.
func (f *flow) socks5Greeting() (method byte, ok bool) {
	for {
		offered, n, st := wire.Socks5Methods(f.c.held())
		switch st {
		case wire.Done:
			var no *refusal
			method, no = f.socks5Method(offered)
			f.c.skip(n)
			if _, err := f.c.Conn.Write([]byte{wire.Socks5Version, method}); err != nil {
				_ = f.c.Close()
				return 0, false
			}
			if no != nil {
				f.report(no.d, no.detail)
				linger(f.c)
			}
			return method, no == nil
		case wire.More:
			if !f.socksMore() {
				return 0, false
			}
		default:
			f.report(because(policy.ReasonMalformed), "the SOCKS5 greeting cannot be read")
			_ = f.c.Close()
			return 0, false
		}
	}
}

// socks5Method picks one of the methods offered, or says why none fits.
func (f *flow) socks5Method(offered wire.Methods) (byte, *refusal) {
	v := visitOf(f.ctx)
	routed := v != nil && v.front.Route != nil
	switch {
	case offered.Password && (routed || !offered.None):
		return wire.MethodPassword, nil
	case !offered.None:
		return wire.MethodNoneFits, refuseFor(policy.ReasonMalformed, "the SOCKS5 client offers no method that this gate has")
	}
	if no := f.settle(credentials{}); no != nil {
		return wire.MethodNoneFits, no
	}
	return wire.MethodNone, nil
}

// socks5Password reads the user name and password and answers them.
func (f *flow) socks5Password() bool {
	for {
		user, n, st := wire.Socks5Password(f.c.held())
		switch st {
		case wire.Done:
			no := f.settle(userCredentials(user))
			f.c.skip(n)
			answer := []byte{1, 0}
			if no != nil {
				answer[1] = 1 // RFC 1929 section 2: any other value is a failure
			}
			_, err := f.c.Conn.Write(answer)
			if no != nil {
				f.report(no.d, no.detail)
				linger(f.c)
			}
			return no == nil && err == nil
		case wire.More:
			if !f.socksMore() {
				return false
			}
		default:
			f.report(because(policy.ReasonMalformed), "the SOCKS5 password message cannot be read")
			_ = f.c.Close()
			return false
		}
	}
}

// socks4 serves one SOCKS4 or 4a connection. The user id is the token where the
// gate serves several policies.
func (s *Server) socks4(ctx context.Context, c *conn) {
	f := s.newSocksFlow(ctx, c, event.DoorSOCKS4)
	f.socksRequest(wire.Socks4Request, "the SOCKS4 request cannot be read")
}

// socksRequest reads one request with parse and serves it.
func (f *flow) socksRequest(parse func([]byte) (wire.Socks, int, wire.State), unreadable string) {
	for {
		r, n, st := parse(f.c.held())
		switch st {
		case wire.Done:
			f.c.skip(n)
			f.socks(r)
			return
		case wire.More:
			if !f.socksMore() {
				return
			}
		default:
			f.refuse(because(policy.ReasonMalformed), unreadable)
			return
		}
	}
}

// socksMore reads on; false: it has refused and closed.
func (f *flow) socksMore() bool {
	err := f.c.more(min(socksMessageMax, f.s.bounds().headBytes))
	if err == nil {
		return true
	}
	reason, detail := f.readReason(err, policy.ReasonMalformed)
	if detail == "" {
		detail = "the SOCKS request does not end"
	}
	f.report(because(reason), detail)
	_ = f.c.Close()
	return false
}

// socks runs the flow that r asks for.
func (f *flow) socks(r wire.Socks) {
	if f.sc.door == event.DoorSOCKS4 {
		cr := credentials{}
		if r.User != "" {
			cr = userCredentials(r.User)
		}
		if no := f.settle(cr); no != nil {
			f.refuse(no.d, no.detail)
			return
		}
	}
	f.req.Port = r.Port
	var err error
	if r.Addr.IsValid() {
		f.req.Host = policy.HostFromAddr(r.Addr)
	} else {
		f.req.Host, err = policy.ParseHost(r.Name)
	}
	switch {
	case r.Command != wire.SocksConnect:
		f.refuse(because(policy.ReasonProtocol), "only the SOCKS command CONNECT is carried")
	case err != nil:
		f.refuse(because(policy.ReasonMalformed), err.Error())
	case r.Port == 0:
		f.refuse(because(policy.ReasonMalformed), "port 0")
	default:
		f.run()
	}
}

func (s *Server) newSocksFlow(ctx context.Context, c *conn, door event.Door) *flow {
	f := s.newFlow(ctx, c, door)
	f.accept = func() error { return f.socksAnswer(0) }
	f.deny = func(d policy.Decision, _ string) { _ = f.socksAnswer(socksReply(d.Reason)) }
	return f
}

// socksAnswer writes the reply; 0 grants. The bound address is not told.
func (f *flow) socksAnswer(code byte) error {
	_ = f.c.SetWriteDeadline(time.Now().Add(writeTimeout))
	var b []byte
	if f.sc.door == event.DoorSOCKS5 {
		var reply [socks5ReplyBytes]byte // VER REP RSV ATYP=IPv4 0.0.0.0:0
		reply[0], reply[1], reply[3] = wire.Socks5Version, code, 1
		b = reply[:]
	} else {
		var reply [8]byte
		reply[1] = socks4Granted
		if code != 0 {
			reply[1] = socks4Rejected
		}
		b = reply[:]
	}
	_, err := f.c.Conn.Write(b)
	return err
}
