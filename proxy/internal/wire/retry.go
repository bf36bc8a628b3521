package wire

import "bytes"

// helloRetry is the Random of a ServerHello that is a HelloRetryRequest (RFC
// 8446 section 4.1.3).
var helloRetry = []byte{
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
}

// RetryBytes is as much of a server's answer as [Retry] reads.
const RetryBytes = recordHeader + handshakeHeader + 2 + randomLen

const typeServerHello = 2

// Retry reads the first bytes of a server's answer to a ClientHello. Done: it
// asks for a second ClientHello, or hides whether it does by cutting its
// ServerHello into small records. Other: it does not ask. More: too early to say.
func Retry(b []byte) State {
	if len(b) > 0 && b[0] != typeHandshake || len(b) > recordHeader && b[recordHeader] != typeServerHello {
		return Other
	}
	if len(b) >= recordHeader && int(b[3])<<8|int(b[4]) < RetryBytes-recordHeader {
		return Done
	}
	random := b[min(len(b), RetryBytes-randomLen):]
	random = random[:min(len(random), randomLen)]
	if !bytes.Equal(random, helloRetry[:len(random)]) {
		return Other
	}
	if len(random) < randomLen {
		return More
	}
	return Done
}

// RecordLen reports the length of the TLS record that b starts with, its header
// included, and whether it holds handshake messages in the clear as far as its
// type says. n is 0 when the header is not there yet.
func RecordLen(b []byte) (n int, handshake bool) {
	if len(b) < recordHeader {
		return 0, false
	}
	return recordHeader + int(b[3])<<8 + int(b[4]), b[0] == typeHandshake
}
