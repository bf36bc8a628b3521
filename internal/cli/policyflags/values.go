package policyflags

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Seconds reads a time: 90, 90s or 10m.
func Seconds(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if n, nerr := strconv.ParseUint(s, 10, 31); nerr == nil {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d <= 0 {
		return 0, errors.New("write a time such as 90s or 10m, more than zero")
	}
	return d, nil
}

// Loopback reads [HOST:]PORT, HOST being an address of the loopback or
// localhost; without it 127.0.0.1.
func Loopback(s string) (netip.AddrPort, error) {
	host, portText := "", s
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		host, portText = s[:i], s[i+1:]
	}
	port, err := Port(portText)
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

// Port reads a port, 1 to 65535.
func Port(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' {
		return 0, fmt.Errorf("%q is not a port: write 1 to 65535", s)
	}
	return uint16(n), nil
}
