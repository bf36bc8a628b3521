package proxy

import "net/netip"

// Client is what a Server knows about who asks, for [Server.Route].
type Client struct {
	Addr netip.AddrPort // zero: not known
	// Token is the user name of the credentials that were sent; HasToken says
	// that there were any. An unknown token must lead to nil, never to the
	// Server for clients without one.
	Token    string
	HasToken bool
}
