package admin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// ParseAddr reads HOST:PORT (HOST an address, localhost or nothing, which means
// every address) or unix:PATH, and reports what net.Listen and a net.Dialer
// take. Port 0 lets the system choose one. An unix path is absolute.
func ParseAddr(s string) (network, address string, err error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
			return "", "", fmt.Errorf("%q: write unix: and an absolute path, as unix:/run/egressd/admin.sock", s)
		}
		if len(path) > maxUnixPath {
			return "", "", fmt.Errorf("%q: a socket's path has at most %d bytes", s, maxUnixPath)
		}
		return "unix", path, nil
	}
	if strings.HasPrefix(s, "/") {
		return "", "", fmt.Errorf("%q: for a socket file write unix:%s", s, s)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", "", fmt.Errorf("%q: write HOST:PORT or unix:PATH", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", "", fmt.Errorf("%q: %q is not a port", s, port)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && host != "localhost" {
		return "", "", fmt.Errorf("%q: %q is not an address: a name could stand for another machine", s, host)
	}
	return "tcp", s, nil
}

// maxUnixPath is what fits into a sockaddr_un on every system, with its NUL.
const maxUnixPath = 103

// dialAddr reports where a client reaches a server that listens at address: a
// listener on every address is asked on the loopback.
func dialAddr(network, address string) (string, error) {
	if network == "unix" {
		return address, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", errors.New("port 0 stands for one that the daemon chose: ask for that one")
	}
	switch a, err := netip.ParseAddr(host); {
	case host == "" || host == "localhost" || err == nil && a == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && a == netip.IPv6Unspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}
