// Package dnsfilter answers DNS questions by policy.
//
//	pins, err := dnsfilter.NewPins(netip.Prefix{}) // 198.18.0.0/15
//	if err != nil {
//		return err
//	}
//	s := &dnsfilter.Server{Policy: &current, Pins: pins, Events: events}
//	err = s.Serve(ctx, packetConn, listener) // until ctx ends
//
// In synthetic mode (the default) an allowed name is answered with an address
// of ours from [Pins], a denied name with NXDOMAIN, and no query leaves the
// machine: the address maps back to the name when the connection arrives. In
// forward mode, for clients that need real addresses, an allowed name is asked
// of the upstreams through [Resolver] and every answer is judged again.
//
// Either way the question is judged by policy.(*Policy).Decide with port 0
// ("is any port of this host reachable?"); only A and AAAA are ever looked up;
// every other type is answered here; each query is one event. The machine's
// own /etc/hosts is not consulted: a hosts entry of the policy is the
// operator's word, a line in /etc/hosts is not.
package dnsfilter
