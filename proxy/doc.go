// Package proxy judges connections: every flow that comes through one of its
// doors (CONNECT, absolute-form HTTP, SOCKS4, 4a and 5, captured TCP) goes where
// a policy lets it, or nowhere.
//
//	var current policy.Current
//	current.Store(compiled)
//	s := &proxy.Server{Policy: &current, Resolver: resolver, Events: sink}
//	err := s.Serve(ctx, ln) // until ctx ends
//
// # Limits
//
// The limits of the policy apply to every Server ([policy.Limits]), with bounded
// defaults. Inside intercepted TLS, and towards origins of plain HTTP, requests
// are HTTP/1.1; HTTP/2 passes only in TLS that is not opened. UDP does not pass.
// Captured connections need Linux.
//
// # What is not promised
//
// The package is a part of egressd: its API changes with it. A tunnel is judged by
// its name, its address and its first bytes; what is encrypted in it is not seen.
// Encrypted ClientHello is held to its outer name.
package proxy

// How to read this package:
//
// server.go says what a Server is made of, serve.go accepts, doors.go recognises
// what a client speaks. conn.go is one client connection from accept to close.
// flow.go is one destination that a client asks for, on its way through the
// checks: name, addresses, ClientHello; dial.go dials an address that was judged;
// tunnel.go and way.go carry the bytes. HTTP requests take the same path one by one:
// http.go, http_exchange.go, http_forward.go. Every question goes through
// judge.go, every event through record.go, and open_flows.go asks again when the
// policy changes.
//
// What needs nothing of a Server is in packages below internal: what clients send
// (wire, peek, http1), what they are answered (denial), what the system says of
// addresses and connections (socket), who is let in (admission), the race to an
// origin (dial), the flows that go on (flows). None of them allows anything.
//
// Two seams lead out: relay.Engine moves the bytes of tunnels, forward.Forwarder
// carries requests. Neither can let a byte pass by itself: way.Count and
// exchange.Pass hold back the first one until the decision is on record
// (event.OnRecord).
