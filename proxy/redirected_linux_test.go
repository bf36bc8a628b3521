//go:build system

package proxy

import (
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"egressd/proxy/internal/socket"
	"egressd/test/iproute"
)

// TestRedirected reads the original destination of connections that nftables
// redirects in a namespace, both families.
func TestRedirected(t *testing.T) {
	inNamespace(t, func() {
		for _, tt := range []struct {
			listen, dst, family string
			all                 netip.Prefix
		}{
			{"127.0.0.1:0", "203.0.113.9:5432", "ip", iproute.All4},
			{"[::1]:0", "[2001:db8::9]:5432", "ip6", iproute.All6},
		} {
			ln, err := net.Listen("tcp", tt.listen)
			if err != nil {
				t.Error(err)
				return
			}
			defer ln.Close()
			port := netip.MustParseAddrPort(ln.Addr().String()).Port()
			rules := []string{
				"add table " + tt.family + " t",
				"add chain " + tt.family + " t out { type nat hook output priority -100 ; }",
				"add rule " + tt.family + " t out tcp dport 5432 redirect to :" + itoa(port),
			}
			if err := (iproute.Route{To: tt.all, Dev: "lo", Local: true}).Add(); err != nil {
				t.Error(err)
				return
			}
			cmd := exec.Command("nft", "-f", "-")
			cmd.Stdin = strings.NewReader(strings.Join(rules, "\n"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("nft: %v: %s", err, out)
				return
			}
			out, err := net.Dial("tcp", tt.dst)
			if err != nil {
				t.Error(tt.dst, err)
				return
			}
			defer out.Close()
			in, err := ln.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer in.Close()
			if got, err := socket.OriginalDst(in); err != nil || got.String() != tt.dst {
				t.Errorf("%v, %v; want %s", got, err, tt.dst)
			}
		}
	})
}
