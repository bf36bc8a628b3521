package proxy

import (
	"context"
	"time"

	"egressd/proxy/internal/drops"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/peek"
	"egressd/proxy/internal/wire"
)

// door is one way in: it reads where a client wants to go and puts that to the
// policy (flow.run). A door with a listener of its own is handed to
// Server.serve; a door that shares one is a recognisable, and a line in doors.
type door interface {
	// name is what events call the door.
	name() event.Door
	// serve reads what the client wants, from its first byte on, and sees to it.
	// It returns the tunnel that is open then and still to be carried; nil: c is
	// done. No byte passes before the decision is on record: tunnels and HTTP
	// exchanges see to that, not doors.
	serve(ctx context.Context, c *conn) *tunnel
}

// recognisable is a door whose clients show by their first bytes.
type recognisable interface {
	door
	// match reports whether a client whose connection begins with first speaks to
	// this door: Done (yes), Other (no), or More (not known yet). It can only look:
	// it has no connection, so it can neither consume a byte nor send one, and all
	// that follows from its answer is which door reads on.
	match(first []byte) wire.State
}

// doors are those that share a listener, in the order in which they are tried.
var doors = [...]recognisable{socks5{}, socks4{}, connect{}, plainHTTP{}, unknown{}}

// explicit is the listener that clients are configured to use: the door that a
// connection goes through is recognised by its first bytes.
type explicit struct{}

func (explicit) name() event.Door { return event.DoorHTTP }

func (explicit) serve(ctx context.Context, c *conn) *tunnel {
	_ = c.SetDeadline(time.Now().Add(c.patience(c.front.bounds().headTimeout))) // fails only on a closed connection: the read says so
	c.whenDraining(func() { _ = c.Conn.SetReadDeadline(time.Now().Add(drainPatience)) })
	err := c.More(peek.BufferBytes)
	c.whenDraining(nil)
	if err != nil {
		if c.isEvicted() {
			c.front.drops.Add(c.door, drops.Quiet)
		}
		return nil // nothing was asked for
	}
	d, err := recognise(c)
	if err != nil {
		f := newFlow(ctx, c, event.DoorHTTP)
		f.door = connect{}
		reason, detail := f.readReason(err, policy.ReasonMalformed)
		f.refuse(because(reason), detail)
		return nil
	}
	return d.serve(ctx, c)
}

// recognise finds the door for c. An error: c ended before that was clear.
func recognise(c *conn) (door, error) {
	for i := 0; ; {
		switch doors[i].match(c.Held()) {
		case wire.Done:
			return doors[i], nil
		case wire.More:
			if err := c.More(peek.BufferBytes); err != nil {
				return nil, err
			}
		default:
			i++ // ends: unknown matches everything
		}
	}
}

// plainHTTP is the door for requests in absolute-form (RFC 9112 section 3.2.2).
type plainHTTP struct{}

func (plainHTTP) name() event.Door { return event.DoorHTTP }

func (plainHTTP) match(first []byte) wire.State {
	if b := first[0]; b > ' ' && b < 0x7f {
		return wire.Done
	}
	return wire.Other
}

func (d plainHTTP) serve(ctx context.Context, c *conn) *tunnel {
	if c.over() != "" {
		f := newFlow(ctx, c, d.name())
		f.door = connect{}
		f.refuse(because(policy.ReasonOverload), "")
		return nil
	}
	_ = c.SetDeadline(time.Time{})
	c.front.serveHTTP(ctx, c, &c.Stream, scope{door: d.name(), client: c.client})
	return nil
}

// unknown refuses what no door speaks: TLS to the proxy port, binary noise.
type unknown struct{}

func (unknown) name() event.Door        { return event.DoorHTTP }
func (unknown) match([]byte) wire.State { return wire.Done }

func (d unknown) serve(ctx context.Context, c *conn) *tunnel {
	f := newFlow(ctx, c, d.name())
	f.door = connect{}
	if c.Held()[0] == tlsHandshake {
		f.report(because(policy.ReasonMalformed), "")
		f.alert()
		return nil
	}
	f.refuse(because(policy.ReasonMalformed), "this port speaks HTTP proxying and SOCKS; these bytes are neither")
	return nil
}
