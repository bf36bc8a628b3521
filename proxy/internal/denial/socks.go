package denial

import "egressd/policy"

// SOCKS5 reply codes (RFC 1928 section 6).
const (
	socksGeneral    = 1
	socksNotAllowed = 2
	socksNetwork    = 3
	socksHost       = 4
	socksRefused    = 5
	socksNoCommand  = 7
)

// SOCKS5 reports the reply code for a reason (RFC 1928 section 6). It is never 0,
// which grants.
func SOCKS5(r policy.Reason) byte {
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
