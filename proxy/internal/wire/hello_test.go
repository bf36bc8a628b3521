package wire

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// helloOf reports what crypto/tls sends as a client.
func helloOf(t testing.TB, conf *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() {
		_ = tls.Client(theirs, conf).Handshake() // fails: nobody answers
		theirs.Close()
	}()
	b := make([]byte, MaxHello)
	n, err := ours.Read(b)
	ours.Close()
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// scanAll gives the scanner the whole of b.
func scanAll(b []byte) (Hello, State) {
	var s HelloScanner
	return s.Scan(b)
}

// scanGrowing gives the scanner b in pieces of n bytes, as TCP might.
func scanGrowing(b []byte, n int) (Hello, State) {
	var s HelloScanner
	for i := n; ; i += n {
		h, st := s.Scan(b[:min(i, len(b))])
		if st != More || i >= len(b) {
			return h, st
		}
	}
}

// fragment splits the payload of one record into records of n bytes.
func fragment(rec []byte, n int) []byte {
	var out []byte
	for p := range slices.Chunk(rec[recordHeader:], n) {
		out = append(out, rec[0], rec[1], rec[2], byte(len(p)>>8), byte(len(p)))
		out = append(out, p...)
	}
	return out
}

// hello builds a record with the extensions given.
func hello(extensions ...[]byte) []byte {
	body := make([]byte, 0, 512)
	body = append(body, 3, 3)
	body = append(body, make([]byte, randomLen)...)
	body = append(body, 0)             // session id
	body = append(body, 0, 2, 0x13, 1) // suites
	body = append(body, 1, 0)          // compression
	ext := slices.Concat(extensions...)
	body = append(body, byte(len(ext)>>8), byte(len(ext)))
	return record1(append(body, ext...))
}

func record1(body []byte) []byte {
	msg := append([]byte{typeClientHello, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
	return append([]byte{typeHandshake, 3, 1, byte(len(msg) >> 8), byte(len(msg))}, msg...)
}

func ext(typ uint16, data ...byte) []byte {
	return append([]byte{byte(typ >> 8), byte(typ), byte(len(data) >> 8), byte(len(data))}, data...)
}

func sni(names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = append(list, nameTypeHostName, byte(len(n)>>8), byte(len(n)))
		list = append(list, n...)
	}
	return ext(extServerName, append([]byte{byte(len(list) >> 8), byte(len(list))}, list...)...)
}

func TestHello(t *testing.T) {
	good := hello(sni("api.example.com"))
	long := strings.Repeat("a", 300) + ".example.com"
	tests := []struct {
		name string
		in   []byte
		want string
		st   State
	}{
		{"one name", good, "api.example.com", Done},
		{"case is kept", hello(sni("API.example.com")), "API.example.com", Done},
		{"no extensions", hello(), "", Done},
		{"no name", hello(ext(43, 2, 3, 4)), "", Done},
		{"GREASE ECH beside the name", hello(ext(0xfe0d, 0, 1, 2), sni("api.example.com"), ext(0x1a1a)), "api.example.com", Done},
		{"an address is a name for somebody else to judge", hello(sni("10.0.0.1")), "10.0.0.1", Done},
		{"longer than a name can be", hello(sni(long)), long, Done},
		{"name in 1-byte records", fragment(good, 1), "api.example.com", Done},
		{"empty", nil, "", More},
		{"half", good[:len(good)/2], "", More},
		{"first byte", good[:1], "", More},
		{"behind it: early data", append(slices.Clone(good), 23, 3, 3, 0, 1, 0), "api.example.com", Done},

		{"two names in the list", hello(sni("a.example", "b.example")), "", Bad},
		{"two server_name extensions", hello(sni("a.example"), sni("b.example")), "", Bad},
		{"the same server_name twice", hello(sni("a.example"), sni("a.example")), "", Bad},
		{"another extension twice", hello(ext(43, 1, 1), sni("a.example"), ext(43, 1, 1)), "", Bad},
		{"trailing dot", hello(sni("api.example.com.")), "", Bad},
		{"NUL", hello(sni("api.example.com\x00.evil")), "", Bad},
		{"space", hello(sni("api.example.com ")), "", Bad},
		{"non-ASCII", hello(sni("ex\u00e4mple.com")), "", Bad},
		{"empty name", hello(sni("")), "", Bad},
		{"empty list", hello(sni()), "", Bad},
		{"empty server_name", hello(ext(extServerName)), "", Bad},
		{"another name type", hello(ext(extServerName, 0, 4, 1, 0, 1, 'a')), "", Bad},
		{"bytes behind the list", hello(ext(extServerName, 0, 4, 0, 0, 1, 'a', 'x')), "", Bad},
		{"zero-length record", append([]byte{22, 3, 1, 0, 0}, good...), "", Bad},
		{"alert in between", slices.Concat(fragment(good, 20)[:25], []byte{21, 3, 1, 0, 2, 1, 0}, fragment(good, 20)[25:]), "", Bad},
		{"change_cipher_spec in between", slices.Concat(fragment(good, 20)[:25], []byte{20, 3, 1, 0, 1, 1}), "", Bad},
		{"second message behind it", record1(append(slices.Clone(good[9:]), 1, 0, 0, 0)), "", Bad},
		{"record too long", []byte{22, 3, 1, 0x40, 1}, "", Bad},
		{"record version 3.9", []byte{22, 3, 9, 0, 1}, "", Bad},
		{"record version 0.1", []byte{22, 0, 1, 0, 1, 1}, "", Bad},
		{"server hello", []byte{22, 3, 3, 0, 4, 2, 0, 0, 0}, "", Bad},
		{"message too long", []byte{22, 3, 3, 0, 4, 1, 2, 0, 0}, "", Bad},
		{"cut in the body", record1(good[9 : len(good)-1]), "", Bad},
		{"SSLv2", []byte{0x80, 46, 1, 3, 1, 0}, "", Bad},
		{"SSLv2 proper", []byte{0x80, 46, 1, 0, 2, 0}, "", Bad},

		{"HTTP", []byte("GET / HTTP/1.1\r\n"), "", Other},
		{"SSH", []byte("SSH-2.0-OpenSSH_9.2\r\n"), "", Other},
		{"PostgreSQL SSLRequest", []byte{0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f}, "", Other},
		{"alert", []byte{21, 3, 1, 0, 2, 1, 0}, "", Other},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, st := scanAll(tt.in)
			if st != tt.st || h.ServerName != tt.want {
				t.Errorf("got %q, state %d; want %q, state %d", h.ServerName, st, tt.want, tt.st)
			}
			if g, gst := scanGrowing(tt.in, 1); g != h || gst != st {
				t.Errorf("byte by byte: %q, state %d", g.ServerName, gst)
			}
		})
	}
}

// TestHelloLen checks that what follows the hello is told from it.
func TestHelloLen(t *testing.T) {
	good := hello(sni("a.example"))
	h, _ := scanAll(append(slices.Clone(good), "more"...))
	if h.Len != len(good) {
		t.Errorf("Len %d, want %d", h.Len, len(good))
	}
}

// TestHelloLarge scans hellos over 4 KiB and over the limit.
func TestHelloLarge(t *testing.T) {
	share := ext(51, make([]byte, 12000)...)
	big := fragment(hello(share, sni("api.example.com")), 1400)
	for _, step := range []int{1, 1000, len(big)} {
		if h, st := scanGrowing(big, step); st != Done || h.ServerName != "api.example.com" {
			t.Errorf("step %d: %q, state %d", step, h.ServerName, st)
		}
	}
	over := append([]byte{22, 3, 1, 0x40, 0, 1, 1, 0, 0}, make([]byte, 16380)...)
	for len(over) < MaxHello+20000 {
		over = append(append(over, 22, 3, 1, 0x40, 0), make([]byte, 1<<14)...)
	}
	if _, st := scanAll(over); st != Bad {
		t.Errorf("over the limit: state %d", st)
	}
}

// oracle reports the name that crypto/tls reads from b. called is false when
// it refuses b before the name counts.
func oracle(b []byte) (name string, called bool) {
	conf := &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, called = h.ServerName, true
		return nil, errors.New("seen")
	}}
	_ = tls.Server(&replay{r: bytes.NewReader(b)}, conf).Handshake() // always fails
	return name, called
}

// replay is a connection that only reads.
type replay struct {
	net.Conn
	r *bytes.Reader
}

func (r *replay) Read(p []byte) (int, error)       { return r.r.Read(p) }
func (r *replay) Write([]byte) (int, error)        { return 0, errors.New("closed") }
func (r *replay) Close() error                     { return nil }
func (r *replay) SetDeadline(time.Time) error      { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }

// FuzzHello holds the scanner against crypto/tls: whatever name crypto/tls
// obeys, the scanner reports the same one or refuses the bytes.
func FuzzHello(f *testing.F) {
	post := helloOf(f, &tls.Config{ServerName: "api.example.com", NextProtos: []string{"h2"}})
	f.Add(post)
	f.Add(helloOf(f, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}))
	f.Add(fragment(post, 7))
	f.Add(hello(sni("a.example", "b.example")))
	f.Add(hello(sni("a.example"), sni("b.example")))
	f.Add(hello(ext(0xfe0d, 0, 1), sni("a.example")))
	f.Add([]byte("CONNECT a:443 HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, st := scanAll(b)
		if g, gst := scanGrowing(b, 3); st == Done && (gst != Done || g != h) {
			t.Fatalf("whole: %+v; in pieces: %+v, state %d", h, g, gst)
		}
		name, called := oracle(b)
		switch {
		case !called || st == Bad:
		case st == Done && h.ServerName == name:
		default:
			t.Fatalf("crypto/tls obeys %q, the scanner says %q, state %d", name, h.ServerName, st)
		}
	})
}

func BenchmarkHello(b *testing.B) {
	rec := helloOf(b, &tls.Config{ServerName: "api.example.com", NextProtos: []string{"h2", "http/1.1"}})
	b.SetBytes(int64(len(rec)))
	b.ReportAllocs()
	for b.Loop() {
		if _, st := scanAll(rec); st != Done {
			b.Fatal(st)
		}
	}
}
