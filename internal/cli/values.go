package cli

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a time as both programs accept it: 30s, 10m, or a number of
// seconds. It may be zero or negative.
func ParseTime(s string) (time.Duration, error) {
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("write a time such as 30s or 10m")
	}
	return d, nil
}

// ParseLimit is ParseTime for a limit, which is more than zero.
func ParseLimit(s string) (time.Duration, error) {
	d, err := ParseTime(s)
	if err != nil || d <= 0 {
		return 0, errors.New("write a time such as 90s or 10m, more than zero")
	}
	return d, nil
}

// TimeVar defines a flag that ParseTime reads.
func TimeVar(fs *flag.FlagSet, d *time.Duration, name string, def time.Duration, usage string) {
	*d = def
	fs.Var((*span)(d), name, usage)
}

// span is the value of such a flag.
type span time.Duration

// String implements [flag.Value].
func (s *span) String() string {
	if s == nil {
		return ""
	}
	return time.Duration(*s).String()
}

// Set implements [flag.Value].
func (s *span) Set(text string) error {
	d, err := ParseTime(text)
	if err == nil {
		*s = span(d)
	}
	return err
}

// ParsePort reads a port, 1 to 65535.
func ParsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' {
		return 0, fmt.Errorf("%q is not a port: write 1 to 65535", s)
	}
	return uint16(n), nil
}

// ParseLoopback reads [HOST:]PORT. HOST is a loopback address or localhost, and
// 127.0.0.1 if it is missing.
func ParseLoopback(s string) (netip.AddrPort, error) {
	host, portText := "", s
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		host, portText = s[:i], s[i+1:]
	}
	port, err := ParsePort(portText)
	if err != nil {
		return netip.AddrPort{}, err
	}
	addr := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if host != "" && host != "localhost" {
		addr, err = netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
		if err != nil || !addr.Unmap().IsLoopback() {
			return netip.AddrPort{}, errors.New("HOST must be a loopback address: 127.0.0.1, [::1] or localhost")
		}
	}
	return netip.AddrPortFrom(addr.Unmap(), port), nil
}
