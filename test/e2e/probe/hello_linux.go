package main

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"

	"egressd/test/e2e/job"
)

// clientHello builds a TLS 1.3 ClientHello as asked (RFC 8446 section 4.1.2),
// in as many records as asked. It is complete enough for a server to answer it.
func clientHello(h job.Hello) []byte {
	if h.SSLv2 {
		return sslv2Hello()
	}
	body := helloBody(h)
	msg := append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	n := max(h.Records, 1)
	var out []byte
	for _, frag := range pieces(msg, n) {
		out = append(out, 22, 3, 1, byte(len(frag)>>8), byte(len(frag)))
		out = append(out, frag...)
	}
	return out[:len(out)-min(h.Truncate, len(out)-1)]
}

func helloBody(h job.Hello) []byte {
	version := h.Version
	if version == 0 {
		version = 0x0303
	}
	body := binary.BigEndian.AppendUint16(nil, version)
	body = append(body, random(32)...)
	body = append(append(body, 32), random(32)...)                // legacy_session_id
	body = append(body, 0, 6, 0x13, 0x01, 0x13, 0x02, 0xc0, 0x2f) // cipher suites
	body = append(body, 1, 0)                                     // null compression
	var ext []byte
	if h.PadBytes > 0 {
		ext = appendExt(ext, 21, make([]byte, h.PadBytes))
	}
	ext = append(ext, serverNames(h)...)
	ext = appendExt(ext, 10, []byte{0, 2, 0, 29})                                 // supported_groups: x25519
	ext = appendExt(ext, 13, []byte{0, 6, 4, 3, 8, 4, 4, 1})                      // signature_algorithms
	ext = appendExt(ext, 43, []byte{4, 3, 4, 3, 3})                               // supported_versions
	ext = appendExt(ext, 51, append([]byte{0, 36, 0, 29, 0, 32}, x25519Key()...)) // key_share
	if h.GREASE {
		// draft-ietf-tls-esni section 6.2: outer, HKDF-SHA256, AES-128-GCM, a random config id, enc and payload.
		ech := append([]byte{0, 0, 1, 0, 1, 0x5a, 0, 32}, x25519Key()...)
		ech = append(append(ech, 0, 144), random(144)...)
		ext = appendExt(ext, 0xfe0d, ech)
	}
	return append(binary.BigEndian.AppendUint16(body, uint16(len(ext))), ext...)
}

// serverNames makes the server_name extension, or two of them.
func serverNames(h job.Hello) []byte {
	if len(h.Names) == 0 {
		return nil
	}
	entry := func(name string) []byte {
		e := []byte{h.NameType, byte(len(name) >> 8), byte(len(name))}
		return append(e, name...)
	}
	list := func(names ...string) []byte {
		var l []byte
		for _, n := range names {
			l = append(l, entry(n)...)
		}
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(l))), l...)
	}
	if !h.Twice {
		return appendExt(nil, 0, list(h.Names...))
	}
	var ext []byte
	for _, n := range h.Names {
		ext = appendExt(ext, 0, list(n))
	}
	return ext
}

func appendExt(b []byte, typ uint16, data []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, typ)
	b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

// sslv2Hello is a CLIENT-HELLO of SSL 2.0 that offers TLS (RFC 5246 appendix E.2).
func sslv2Hello() []byte {
	msg := []byte{1, 3, 3, 0, 3, 0, 0, 0, 16, 0, 0, 0x2f}
	msg = append(msg, random(16)...)
	return append([]byte{0x80, byte(len(msg))}, msg...)
}

// x25519Key is a public key that a server can compute with: the base point's
// little-endian spelling with random higher bytes below the field's prime.
func x25519Key() []byte {
	k := random(32)
	k[31] &= 0x3f
	return k
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: crypto/rand
	return b
}

// pieces cuts b into n nearly equal parts (1 when n < 2).
func pieces(b []byte, n int) [][]byte {
	if n < 2 {
		return [][]byte{bytes.Clone(b)}
	}
	size := max((len(b)+n-1)/n, 1)
	var out [][]byte
	for len(b) > size {
		out = append(out, b[:size])
		b = b[size:]
	}
	return append(out, b)
}
