package wire

import (
	"bytes"
	"net/netip"
)

// Socks is one SOCKS request.
type Socks struct {
	Command byte       // 1 CONNECT, 2 BIND, 3 UDP ASSOCIATE
	Name    string     // the destination's name as sent, "" when Addr is set
	Addr    netip.Addr // the destination's address, zero when Name is set
	Port    uint16
	User    string // the user id of SOCKS4, "" in SOCKS5
}

// SOCKS protocol bytes (RFC 1928 sections 3 to 6, RFC 1929, SOCKS 4A memo).
const (
	Socks5Version    = 5
	Socks4Version    = 4
	SocksConnect     = 1
	MethodNone       = 0x00
	MethodPassword   = 0x02
	MethodNoneFits   = 0xff
	passwordVersion  = 1
	addrIPv4         = 1
	addrName         = 3
	addrIPv6         = 4
	socks4UserMax    = 255
	socks4NameMax    = 255
	socks5HeaderSize = 4
)

// Methods are the authentication methods of RFC 1928 section 3 that a client
// offers and this gate has.
type Methods struct{ None, Password bool }

// Socks5Methods reads the greeting that b starts with.
func Socks5Methods(b []byte) (m Methods, n int, st State) {
	if len(b) > 0 && b[0] != Socks5Version {
		return m, 0, Other
	}
	if len(b) < 2 {
		return m, 0, More
	}
	if b[1] == 0 {
		return m, 0, Bad
	}
	n = 2 + int(b[1])
	if len(b) < n {
		return m, 0, More
	}
	m.None = bytes.IndexByte(b[2:n], MethodNone) >= 0
	m.Password = bytes.IndexByte(b[2:n], MethodPassword) >= 0
	return m, n, Done
}

// Socks5Password reads the user name and password that b starts with (RFC
// 1929). The password is ignored. user may be empty, which the RFC does
// not allow.
func Socks5Password(b []byte) (user string, n int, st State) {
	if len(b) > 0 && b[0] != passwordVersion {
		return "", 0, Bad
	}
	if len(b) < 2 {
		return "", 0, More
	}
	n = 2 + int(b[1])
	if len(b) < n+1 {
		return "", 0, More
	}
	user = string(b[2:n])
	n += 1 + int(b[n])
	if len(b) < n {
		return "", 0, More
	}
	return user, n, Done
}

// Socks5Request reads the request that b starts with.
func Socks5Request(b []byte) (r Socks, n int, st State) {
	if len(b) > 0 && b[0] != Socks5Version || len(b) > 2 && b[2] != 0 {
		return r, 0, Bad
	}
	if len(b) < socks5HeaderSize {
		return r, 0, More
	}
	r.Command = b[1]
	n = socks5HeaderSize
	size := 0
	switch b[3] {
	case addrIPv4:
		size = 4
	case addrIPv6:
		size = 16
	case addrName:
		if len(b) < n+1 {
			return r, 0, More
		}
		size = int(b[n])
		n++
		if size == 0 {
			return r, 0, Bad
		}
	default:
		return r, 0, Bad
	}
	if len(b) < n+size+2 {
		return r, 0, More
	}
	dst := b[n : n+size]
	n += size
	r.Port = uint16(b[n])<<8 | uint16(b[n+1])
	n += 2
	if b[3] == addrName {
		if !visible(dst) {
			return r, 0, Bad
		}
		r.Name = string(dst)
	} else {
		r.Addr, _ = netip.AddrFromSlice(dst)
	}
	return r, n, Done
}

// Socks4Request reads the SOCKS4 or 4a request that b starts with.
func Socks4Request(b []byte) (r Socks, n int, st State) {
	if len(b) > 0 && b[0] != Socks4Version {
		return r, 0, Other
	}
	if len(b) < 8 {
		return r, 0, More
	}
	r.Command = b[1]
	r.Port = uint16(b[2])<<8 | uint16(b[3])
	addr := netip.AddrFrom4([4]byte(b[4:8]))
	user, n, st := cString(b, 8, socks4UserMax)
	if st != Done {
		return r, 0, st
	}
	r.User = string(user)
	// 4a: 0.0.0.x with x not zero says that a name follows.
	if !(b[4] == 0 && b[5] == 0 && b[6] == 0 && b[7] != 0) {
		r.Addr = addr
		return r, n, Done
	}
	name, n, st := cString(b, n, socks4NameMax)
	if st != Done {
		return r, 0, st
	}
	if len(name) == 0 || !visible(name) {
		return r, 0, Bad
	}
	r.Name = string(name)
	return r, n, Done
}

// cString reads the NUL-terminated string at b[from:], at most limit bytes long.
func cString(b []byte, from, limit int) (s []byte, n int, st State) {
	rest := b[from:]
	i := bytes.IndexByte(rest, 0)
	if i < 0 && len(rest) > limit || i > limit {
		return nil, 0, Bad
	}
	if i < 0 {
		return nil, 0, More
	}
	return rest[:i], from + i + 1, Done
}
