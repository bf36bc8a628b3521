package wire

import (
	"golang.org/x/crypto/cryptobyte"
)

// Specification constants (RFC 8446 sections 4, 5.1; RFC 6066 section 3).
const (
	recordHeader     = 5
	recordMax        = 1 << 14
	typeHandshake    = 22
	typeClientHello  = 1
	handshakeHeader  = 4
	extServerName    = 0
	nameTypeHostName = 0
	randomLen        = 32
	sessionIDMax     = 32
)

// Implementation constants.
const (
	// MaxHello bounds a ClientHello with its record headers. Hellos with
	// post-quantum key shares take about 2 KiB.
	MaxHello = 64 << 10
	// maxExtensions bounds the extensions of one hello; clients send about 20.
	maxExtensions = 128
)

// Hello is what a ClientHello says about where it wants to go.
type Hello struct {
	// ServerName is the host_name of the server_name extension as sent, "" when
	// there is none. It is ASCII without controls, spaces or a trailing dot;
	// it may still be an IP address or no host at all.
	ServerName string
	// Len is the length of the records that hold the hello.
	Len int
}

// HelloScanner reassembles a ClientHello from a growing buffer. The zero
// HelloScanner is ready.
type HelloScanner struct {
	next int    // offset of the first record not taken in yet
	body []byte // handshake bytes of the records before next
	own  bool   // body is a copy, not a part of the buffer
	err  bool
}

// Scan looks at b, which must start with the bytes given last time and holds
// everything the client has sent. Other means that b does not start like TLS.
func (s *HelloScanner) Scan(b []byte) (Hello, State) {
	if st := begins(b); st != Done {
		return Hello{}, st
	}
	for {
		if s.err || s.next > MaxHello {
			return Hello{}, Bad
		}
		rest := b[s.next:]
		if len(rest) == 0 {
			return Hello{}, More
		}
		n, st := record(rest)
		if st == Bad {
			s.err = true
			return Hello{}, Bad
		}
		if st == More {
			return Hello{}, More
		}
		s.take(rest[recordHeader : recordHeader+n])
		s.next += recordHeader + n
		if h, st := s.message(); st != More {
			s.err = st == Bad
			return h, st
		}
	}
}

// begins tells TLS from other protocols by the first bytes. An SSLv2 hello is
// Bad: it carries no name, and no client has a reason to send one.
//
// Threat: a client sends a record version that we take for another protocol
// and a lenient server (crypto/tls takes any below 0x1000) for TLS -> such
// bytes are TLS here too, with a version that is Bad.
func begins(b []byte) State {
	switch {
	case len(b) == 0:
		return More
	case b[0] == typeHandshake:
		if len(b) < 2 {
			return More
		}
		if b[1] >= 0x10 {
			return Other
		}
		return Done
	case sslv2(b):
		if len(b) < 5 {
			return More
		}
		return Bad
	}
	return Other
}

// sslv2 reports whether b may be the beginning of an SSLv2 ClientHello (RFC
// 6101 appendix E), which offers SSLv2 or any version from SSLv3 on.
func sslv2(b []byte) bool {
	return b[0]&0x80 != 0 &&
		(len(b) < 3 || b[2] == typeClientHello) &&
		(len(b) < 4 || b[3] == 3 || b[3] == 0) &&
		(len(b) < 5 || b[3] == 3 && b[4] <= 4 || b[3] == 0 && b[4] == 2)
}

// record reports the payload length of the record that b starts with. Other
// record types, empty records and records over the limit have no place before
// the end of a ClientHello.
func record(b []byte) (int, State) {
	if b[0] != typeHandshake || len(b) > 1 && b[1] != 3 || len(b) > 2 && b[2] > 4 {
		return 0, Bad
	}
	if len(b) < recordHeader {
		return 0, More
	}
	n := int(b[3])<<8 | int(b[4])
	if n == 0 || n > recordMax {
		return 0, Bad
	}
	if len(b) < recordHeader+n {
		return 0, More
	}
	return n, Done
}

// take appends one record's payload. The usual single record is not copied.
func (s *HelloScanner) take(p []byte) {
	switch {
	case s.body == nil:
		s.body = p
	case !s.own:
		s.body = append(append(make([]byte, 0, 2*len(s.body)+len(p)), s.body...), p...)
		s.own = true
	default:
		s.body = append(s.body, p...)
	}
}

func (s *HelloScanner) message() (Hello, State) {
	b := s.body
	if b[0] != typeClientHello {
		return Hello{}, Bad
	}
	if len(b) < handshakeHeader {
		return Hello{}, More
	}
	n := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
	if n > MaxHello {
		return Hello{}, Bad
	}
	if len(b) < handshakeHeader+n {
		return Hello{}, More
	}
	if len(b) > handshakeHeader+n {
		return Hello{}, Bad // a second handshake message behind the hello
	}
	name, ok := clientHello(b[handshakeHeader:])
	if !ok {
		return Hello{}, Bad
	}
	return Hello{ServerName: name, Len: s.next}, Done
}

// clientHello reads the body of a ClientHello (RFC 8446 section 4.1.2).
func clientHello(b []byte) (serverName string, ok bool) {
	s := cryptobyte.String(b)
	var session, suites, compression, extensions cryptobyte.String
	if !s.Skip(2+randomLen) ||
		!s.ReadUint8LengthPrefixed(&session) || len(session) > sessionIDMax ||
		!s.ReadUint16LengthPrefixed(&suites) || len(suites) < 2 || len(suites)%2 != 0 ||
		!s.ReadUint8LengthPrefixed(&compression) || len(compression) == 0 {
		return "", false
	}
	if s.Empty() {
		return "", true // no extensions at all: no name
	}
	if !s.ReadUint16LengthPrefixed(&extensions) || !s.Empty() {
		return "", false
	}
	return serverNameOf(extensions)
}

func serverNameOf(extensions cryptobyte.String) (name string, ok bool) {
	var seen [maxExtensions]uint16
	for n := 0; !extensions.Empty(); n++ {
		var typ uint16
		var data cryptobyte.String
		if n == maxExtensions || !extensions.ReadUint16(&typ) || !extensions.ReadUint16LengthPrefixed(&data) {
			return "", false
		}
		// Threat: a second server_name that a server prefers over the one we
		// judge -> any extension sent twice is refused (RFC 8446 section 4.2).
		for _, s := range seen[:n] {
			if s == typ {
				return "", false
			}
		}
		seen[n] = typ
		if typ == extServerName {
			if name, ok = hostName(data); !ok {
				return "", false
			}
		}
	}
	return name, true
}

// hostName reads a server_name extension that holds one host_name and nothing
// else (RFC 6066 section 3).
func hostName(data cryptobyte.String) (string, bool) {
	var list, name cryptobyte.String
	var typ uint8
	if !data.ReadUint16LengthPrefixed(&list) || !data.Empty() ||
		!list.ReadUint8(&typ) || typ != nameTypeHostName ||
		!list.ReadUint16LengthPrefixed(&name) || !list.Empty() || len(name) == 0 {
		return "", false
	}
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return "", false
		}
	}
	if name[len(name)-1] == '.' {
		return "", false
	}
	return string(name), true
}
