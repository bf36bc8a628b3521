package proxy

import (
	"net/netip"

	"egressd/event"
	"egressd/policy"
)

// scope fixes what the HTTP requests on a connection may ask for.
type scope struct {
	door event.Door
	// host is the one judged host that origin-form requests on this connection
	// stand for. Zero with captured false: the explicit proxy door, which wants
	// absolute-form. Zero with captured true: captured port 80 to an address
	// that no rule names; requests are origin-form and Host is the judged name.
	host     policy.Host
	captured bool
	port     uint16 // of host, or the captured port; 0 at the explicit door
	tls      bool   // inside intercepted TLS: upstream is https
	flow     uint64 // 0: each request takes its own from Server.newFlow
	client   netip.AddrPort
	// addr is the captured address (zero elsewhere), for events only: it is
	// never dialled.
	addr netip.AddrPort
}
