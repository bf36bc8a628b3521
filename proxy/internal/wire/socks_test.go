package wire

import (
	"net/netip"
	"strings"
	"testing"
)

func TestSocks5Request(t *testing.T) {
	tests := []struct {
		name string
		in   string
		want Socks
		st   State
	}{
		{"name", "\x05\x01\x00\x03\x09a.example\x01\xbb", Socks{Command: SocksConnect, Name: "a.example", Port: 443}, Done},
		{"IPv4", "\x05\x01\x00\x01\x0a\x00\x00\x01\x00\x50", Socks{Command: SocksConnect, Addr: netip.MustParseAddr("10.0.0.1"), Port: 80}, Done},
		{"IPv6", "\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50", Socks{Command: SocksConnect, Addr: netip.MustParseAddr("::1"), Port: 80}, Done},
		{"an address spelled in the name", "\x05\x01\x00\x03\x0810.0.0.1\x00\x50", Socks{Command: SocksConnect, Name: "10.0.0.1", Port: 80}, Done},
		{"BIND", "\x05\x02\x00\x01\x0a\x00\x00\x01\x00\x50", Socks{Command: 2, Addr: netip.MustParseAddr("10.0.0.1"), Port: 80}, Done},
		{"NUL in the name", "\x05\x01\x00\x03\x06a\x00evil\x00\x50", Socks{}, Bad},
		{"space in the name", "\x05\x01\x00\x03\x02a \x00\x50", Socks{}, Bad},
		{"empty name", "\x05\x01\x00\x03\x00\x00\x50", Socks{}, Bad},
		{"another address type", "\x05\x01\x00\x02\x00\x00\x50", Socks{}, Bad},
		{"reserved byte", "\x05\x01\x01\x01\x0a\x00\x00\x01\x00\x50", Socks{}, Bad},
		{"version", "\x04\x01\x00\x01\x0a\x00\x00\x01\x00\x50", Socks{}, Bad},
		{"half", "\x05\x01\x00\x03\x09a.exa", Socks{}, More},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, n, st := Socks5Request([]byte(tt.in))
			if st != tt.st || st == Done && (got != tt.want || n != len(tt.in)) {
				t.Errorf("got %+v, %d, state %d", got, n, st)
			}
			for i := range len(tt.in) {
				if _, _, st := Socks5Request([]byte(tt.in[:i])); st != More && st != tt.st || st == Done {
					t.Errorf("after %d bytes: state %d", i, st)
				}
			}
		})
	}
}

func TestSocks4Request(t *testing.T) {
	tests := []struct {
		name string
		in   string
		want Socks
		st   State
	}{
		{"IPv4", "\x04\x01\x01\xbb\x0a\x00\x00\x01user\x00", Socks{Command: SocksConnect, Addr: netip.MustParseAddr("10.0.0.1"), Port: 443, User: "user"}, Done},
		{"4a", "\x04\x01\x01\xbb\x00\x00\x00\x01\x00a.example\x00", Socks{Command: SocksConnect, Name: "a.example", Port: 443}, Done},
		{"0.0.0.0 is no 4a", "\x04\x01\x01\xbb\x00\x00\x00\x00\x00", Socks{Command: SocksConnect, Addr: netip.MustParseAddr("0.0.0.0"), Port: 443}, Done},
		{"4a without a name", "\x04\x01\x01\xbb\x00\x00\x00\x01\x00\x00", Socks{}, Bad},
		{"4a, control byte", "\x04\x01\x01\xbb\x00\x00\x00\x01\x00a\n\x00", Socks{}, Bad},
		{"no end of the user", "\x04\x01\x01\xbb\x0a\x00\x00\x01" + strings.Repeat("u", 300), Socks{}, Bad},
		{"no end of the name", "\x04\x01\x01\xbb\x00\x00\x00\x01\x00" + strings.Repeat("a", 300), Socks{}, Bad},
		{"half", "\x04\x01\x01\xbb\x00\x00\x00\x01\x00a.exa", Socks{}, More},
		{"version", "\x05\x01\x01\xbb\x0a\x00\x00\x01\x00", Socks{}, Other},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, n, st := Socks4Request([]byte(tt.in))
			if st != tt.st || st == Done && (got != tt.want || n != len(tt.in)) {
				t.Errorf("got %+v, %d, state %d", got, n, st)
			}
		})
	}
}

func TestSocks5Methods(t *testing.T) {
	tests := []struct {
		in   string
		want Methods
		n    int
		st   State
	}{
		{"\x05\x01\x00", Methods{None: true}, 3, Done},
		{"\x05\x02\x02\x00", Methods{None: true, Password: true}, 4, Done},
		{"\x05\x01\x02", Methods{Password: true}, 3, Done},
		{"\x05\x01\x01", Methods{}, 3, Done},
		{"\x05\x00", Methods{}, 0, Bad},
		{"\x05\x02\x02", Methods{}, 0, More},
		{"\x04\x01", Methods{}, 0, Other},
	}
	for _, tt := range tests {
		if m, n, st := Socks5Methods([]byte(tt.in)); m != tt.want || n != tt.n || st != tt.st {
			t.Errorf("%q: %+v, %d, state %d", tt.in, m, n, st)
		}
	}
}

func TestSocks5Password(t *testing.T) {
	tests := []struct {
		in   string
		user string
		n    int
		st   State
	}{
		{"\x01\x01u\x01p", "u", 5, Done},
		{"\x01\x02u:\x00", "u:", 5, Done},
		{"\x01\x00\x00", "", 3, Done},
		{"\x01\x01u\x01", "", 0, More},
		{"\x01\x01", "", 0, More},
		{"\x02\x01u\x01p", "", 0, Bad},
	}
	for _, tt := range tests {
		if user, n, st := Socks5Password([]byte(tt.in)); st != tt.st || st == Done && (n != tt.n || user != tt.user) {
			t.Errorf("%q: %q, %d, state %d", tt.in, user, n, st)
		}
	}
}

// FuzzSocks checks that no message is read past its end and that a message
// does not change when more bytes follow it.
func FuzzSocks(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x03\x09a.example\x01\xbb"))
	f.Add([]byte("\x04\x01\x01\xbb\x00\x00\x00\x01\x00a.example\x00"))
	f.Add([]byte("\x05\x02\x02\x00"))
	f.Add([]byte("\x01\x01u\x01p"))
	f.Fuzz(func(t *testing.T, b []byte) {
		more := append(append([]byte{}, b...), 0)
		for _, parse := range []func([]byte) (Socks, int, State){Socks5Request, Socks4Request} {
			r, n, st := parse(b)
			if st != Done {
				continue
			}
			if n > len(b) || r.Name == "" == !r.Addr.IsValid() {
				t.Fatalf("%q: %+v, %d", b, r, n)
			}
			if again, m, st := parse(more); again != r || m != n || st != Done {
				t.Fatalf("%q: %+v, with more bytes %+v", b, r, again)
			}
		}
		if _, n, st := Socks5Methods(b); st == Done && n > len(b) {
			t.Fatal(n)
		}
		if _, n, st := Socks5Password(b); st == Done && n > len(b) {
			t.Fatal(n)
		}
	})
}
