package process

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// resolvTarget reports the file behind /etc/resolv.conf, "" if there is none.
func resolvTarget() string {
	const path = "/etc/resolv.conf"
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	// Dangling: the target may lie in a directory that becomes private.
	link, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	if !filepath.IsAbs(link) {
		link = filepath.Join("/etc", link)
	}
	return filepath.Clean(link)
}

// loopbackHosts reports the lines of /etc/hosts that name loopback addresses.
// Every other name must be asked at the DNS door, or a connection would arrive
// as a bare address that no rule knows.
func loopbackHosts() *string {
	data, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return nil
	}
	out := []byte("# Every other name is answered by the gate.\n")
	for line := range bytes.Lines(data) {
		addr, _, _ := strings.Cut(strings.TrimSpace(string(line)), "#")
		fields := strings.Fields(addr)
		if len(fields) < 2 {
			continue
		}
		if a, err := netip.ParseAddr(fields[0]); err == nil && a.IsLoopback() {
			out = append(out, strings.Join(fields, " ")+"\n"...)
		}
	}
	text := string(out)
	return &text
}

// runtimeDir is where the run's own files are: the resolver's configuration
// and the session's certificates.
func runtimeDir() string {
	for _, base := range []string{"/run", "/tmp"} {
		if fi, err := os.Lstat(base); err == nil && fi.IsDir() {
			return base + "/egressd"
		}
	}
	return "/dev/egressd"
}
