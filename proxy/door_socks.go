package proxy

import (
	"context"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/denial"
	"egressd/proxy/internal/wire"
)

// Implementation constants.
const (
	socks4Granted    = 90
	socks4Rejected   = 91
	socksMessageMax  = 1 << 10 // no message of RFC 1928 or 1929 is longer than 515 bytes
	socks5ReplyBytes = 10
)

// socks5 is the door for SOCKS5 (RFC 1928). If the Server has a Route, the user
// name of RFC 1929 is the token; otherwise any user name and password is accepted
// and ignored.
type socks5 struct{}

func (socks5) name() event.Door              { return event.DoorSOCKS5 }
func (socks5) match(first []byte) wire.State { return begins(first, wire.Socks5Version) }

func (d socks5) serve(ctx context.Context, c *conn) *tunnel {
	f := newFlow(ctx, c, d.name())
	f.door = d
	method, ok := f.socks5Greeting()
	if !ok {
		return nil
	}
	if method == wire.MethodPassword && !f.socks5Password() {
		return nil
	}
	return f.socksRequest(wire.Socks5Request, "the SOCKS5 request cannot be read")
}

// accept implements voice.
func (socks5) accept(f *flow) error { return f.socks5Answer(0) }

// deny implements voice.
func (socks5) deny(f *flow, d policy.Decision, _ string) { _ = f.socks5Answer(denial.SOCKS5(d.Reason)) }

// socks4 is the door for SOCKS4 and 4a. The user id is the token if the Server
// has a Route.
type socks4 struct{}

func (socks4) name() event.Door              { return event.DoorSOCKS4 }
func (socks4) match(first []byte) wire.State { return begins(first, wire.Socks4Version) }

func (d socks4) serve(ctx context.Context, c *conn) *tunnel {
	f := newFlow(ctx, c, d.name())
	f.door = d
	return f.socksRequest(wire.Socks4Request, "the SOCKS4 request cannot be read")
}

// accept implements voice.
func (socks4) accept(f *flow) error { return f.socks4Answer(socks4Granted) }

// deny implements voice.
func (socks4) deny(f *flow, _ policy.Decision, _ string) { _ = f.socks4Answer(socks4Rejected) }

// begins matches the version byte that every SOCKS client sends first.
func begins(first []byte, version byte) wire.State {
	if first[0] == version {
		return wire.Done
	}
	return wire.Other
}

// socks5Greeting agrees on a method: on a password if the client offers one and
// the Server needs to know the client.
func (f *flow) socks5Greeting() (method byte, ok bool) {
	for {
		offered, n, st := wire.Socks5Methods(f.in.Held())
		switch st {
		case wire.Done:
			var no *refusal
			method, no = f.socks5Method(offered)
			f.in.Skip(n)
			if _, err := f.in.Conn.Write([]byte{wire.Socks5Version, method}); err != nil {
				_ = f.in.Close()
				return 0, false
			}
			if no != nil {
				f.report(no.d, no.detail)
				f.in.Linger()
			}
			return method, no == nil
		case wire.More:
			if !f.socksMore() {
				return 0, false
			}
		default:
			f.report(because(policy.ReasonMalformed), "the SOCKS5 greeting cannot be read")
			_ = f.in.Close()
			return 0, false
		}
	}
}

// socks5Method picks one of the methods offered, or says why none fits.
func (f *flow) socks5Method(offered wire.Methods) (byte, *refusal) {
	routed := f.c.front.Route != nil
	switch {
	case offered.Password && (routed || !offered.None):
		return wire.MethodPassword, nil
	case !offered.None:
		return wire.MethodNoneFits, refuseFor(policy.ReasonMalformed, "the SOCKS5 client offers no method that this gate has")
	}
	if no := f.authenticate(wire.Credentials{}); no != nil {
		return wire.MethodNoneFits, no
	}
	return wire.MethodNone, nil
}

// socks5Password reads the user name and password and answers them.
func (f *flow) socks5Password() bool {
	for {
		user, n, st := wire.Socks5Password(f.in.Held())
		switch st {
		case wire.Done:
			no := f.authenticate(wire.UserCredentials(user))
			f.in.Skip(n)
			answer := []byte{1, 0}
			if no != nil {
				answer[1] = 1 // RFC 1929 section 2: any other value is a failure
			}
			_, err := f.in.Conn.Write(answer)
			if no != nil {
				f.report(no.d, no.detail)
				f.in.Linger()
			}
			return no == nil && err == nil
		case wire.More:
			if !f.socksMore() {
				return false
			}
		default:
			f.report(because(policy.ReasonMalformed), "the SOCKS5 password message cannot be read")
			_ = f.in.Close()
			return false
		}
	}
}

// socksRequest reads one request with parse and serves it.
func (f *flow) socksRequest(parse func([]byte) (wire.Socks, int, wire.State), unreadable string) *tunnel {
	for {
		r, n, st := parse(f.in.Held())
		switch st {
		case wire.Done:
			f.in.Skip(n)
			return f.socks(r)
		case wire.More:
			if !f.socksMore() {
				return nil
			}
		default:
			f.refuse(because(policy.ReasonMalformed), unreadable)
			return nil
		}
	}
}

// socksMore reads on; false: it has refused and closed.
func (f *flow) socksMore() bool {
	err := f.in.More(min(socksMessageMax, f.s.bounds().headBytes))
	if err == nil {
		return true
	}
	reason, detail := f.readReason(err, policy.ReasonMalformed)
	if detail == "" {
		detail = "the SOCKS request does not end"
	}
	f.report(because(reason), detail)
	_ = f.in.Close()
	return false
}

// socks runs the flow that r asks for.
func (f *flow) socks(r wire.Socks) *tunnel {
	if f.sc.door == event.DoorSOCKS4 {
		cr := wire.Credentials{}
		if r.User != "" {
			cr = wire.UserCredentials(r.User)
		}
		if no := f.authenticate(cr); no != nil {
			f.refuse(no.d, no.detail)
			return nil
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
		return f.run()
	}
	return nil
}

// socks5Answer writes the reply; 0 grants. The bound address is not reported.
func (f *flow) socks5Answer(code byte) error {
	var reply [socks5ReplyBytes]byte // VER REP RSV ATYP=IPv4 0.0.0.0:0
	reply[0], reply[1], reply[3] = wire.Socks5Version, code, 1
	return f.socksWrite(reply[:])
}

func (f *flow) socks4Answer(code byte) error { return f.socksWrite([]byte{1: code, 7: 0}) }

func (f *flow) socksWrite(b []byte) error {
	_ = f.in.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := f.in.Conn.Write(b)
	return err
}
