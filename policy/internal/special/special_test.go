package special

import (
	"net/netip"
	"testing"
)

func TestClass(t *testing.T) {
	for _, tt := range append(blockRows(), embeddedRows()...) {
		if got := Class(netip.MustParseAddr(tt.addr)); got != tt.want {
			t.Errorf("Class(%s) = %q, want %q", tt.addr, got, tt.want)
		}
	}
	if Class(netip.Addr{}) == "" {
		t.Error("the invalid address passes for public")
	}
}

type classRow struct{ addr, want string }

func blockRows() []classRow {
	return []classRow{
		// Both edges of each block, and their neighbours outside.
		{"0.0.0.0", "this_host_on_this_network"},
		{"0.0.0.1", "this_network"},
		{"0.255.255.255", "this_network"},
		{"1.0.0.0", ""},
		{"9.255.255.255", ""},
		{"10.0.0.0", "private_use"},
		{"10.255.255.255", "private_use"},
		{"11.0.0.0", ""},
		{"100.63.255.255", ""},
		{"100.64.0.0", "shared_address_space"},
		{"100.127.255.255", "shared_address_space"},
		{"100.128.0.0", ""},
		{"126.255.255.255", ""},
		{"127.0.0.0", "loopback"},
		{"127.0.0.1", "loopback"},
		{"127.255.255.255", "loopback"},
		{"128.0.0.0", ""},
		{"168.63.129.15", ""},
		{"168.63.129.16", "azure_wireserver"},
		{"168.63.129.17", ""},
		{"::ffff:0:127.0.0.1", "ipv4_translated_siit_deprecated"},
		{"::ffff:0:203.0.114.1", "ipv4_translated_siit_deprecated"},
		{"::fffe:0:127.0.0.1", ""},
		{"169.253.255.255", ""},
		{"169.254.0.0", "link_local"},
		{"169.254.169.254", "link_local"},
		{"169.254.255.255", "link_local"},
		{"169.255.0.0", ""},
		{"172.15.255.255", ""},
		{"172.16.0.0", "private_use"},
		{"172.31.255.255", "private_use"},
		{"172.32.0.0", ""},
		{"191.255.255.255", ""},
		{"192.0.0.0", "ipv4_service_continuity_prefix"},
		{"192.0.0.8", "ipv4_dummy_address"},
		{"192.0.0.9", "port_control_protocol_anycast"}, // reachable by registry, special by design
		{"192.0.0.170", "nat64_dns64_discovery"},
		{"192.0.0.171", "nat64_dns64_discovery"},
		{"192.0.0.255", "ietf_protocol_assignments"},
		{"192.0.1.0", ""},
		{"192.0.2.0", "documentation"},
		{"192.0.2.255", "documentation"},
		{"192.0.3.0", ""},
		{"192.88.99.1", "deprecated_6to4_relay_anycast"},
		{"192.31.196.1", "as112_v4"},
		{"192.167.255.255", ""},
		{"192.168.0.0", "private_use"},
		{"192.168.255.255", "private_use"},
		{"192.169.0.0", ""},
		{"198.17.255.255", ""},
		{"198.18.0.0", "benchmarking"},
		{"198.19.255.255", "benchmarking"},
		{"198.20.0.0", ""},
		{"198.51.100.7", "documentation"},
		{"203.0.113.0", "documentation"},
		{"203.0.114.0", ""},
		{"223.255.255.255", ""},
		{"224.0.0.0", "multicast"},
		{"239.255.255.255", "multicast"},
		{"240.0.0.0", "reserved"},
		{"255.255.255.254", "reserved"},
		{"255.255.255.255", "limited_broadcast"},
		{"8.8.8.8", ""},

		{"::", "unspecified_address"},
		{"::1", "loopback_address"},
		{"::2", "ipv4_compatible_deprecated"},
		{"64:ff9b:1::", "ipv4_ipv6_translat"},
		{"64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "ipv4_ipv6_translat"},
		{"64:ff9b:2::", ""},
		{"100::1", "discard_only_address_block"},
		{"100:0:0:1::1", "dummy_ipv6_prefix"},
		{"100:0:0:2::", ""},
		{"2001:2::1", "benchmarking"},
		{"2001:20::1", "orchidv2"},
		{"2001:1ff::", "ietf_protocol_assignments"},
		{"2001:200::", ""},
		{"2001:db8::", "documentation"},
		{"2001:db9::", ""},
		{"3fff::1", "documentation"},
		{"3fff:1000::", ""},
		{"5f00::1", "segment_routing_srv6_sids"},
		{"fbff::", ""},
		{"fc00::", "unique_local"},
		{"fd00:ec2::254", "unique_local"},
		{"fdff:ffff::", "unique_local"},
		{"fe00::", ""},
		{"fe7f::", ""},
		{"fe80::1", "link_local_unicast"},
		{"febf::1", "link_local_unicast"},
		{"fec0::1", "site_local_deprecated"},
		{"feff::1", "site_local_deprecated"},
		{"ff00::", "multicast"},
		{"ff02::1", "multicast"},
		{"2606:4700:4700::1111", ""},
	}
}

// embeddedRows: the IPv4 inside decides.
func embeddedRows() []classRow {
	return []classRow{
		{"::ffff:10.0.0.1", "private_use"},
		{"::ffff:8.8.8.8", ""},
		{"64:ff9b::10.0.0.1", "private_use"},
		{"64:ff9b::169.254.169.254", "link_local"},
		{"64:ff9b::8.8.8.8", ""},
		{"2002:7f00:1::", "loopback"},
		{"2002:a00:1::1", "private_use"},
		{"2002:808:808::1", ""},
		{"2001:0:808:808::f5ff:fffe", "private_use"}, // Teredo client 10.0.0.1, inverted
		{"2001:0:a00:1::f7f7:f7f7", "private_use"},   // Teredo server 10.0.0.1
		{"2001:0:808:808::f7f7:f7f7", ""},            // both 8.8.8.8
		{"::10.0.0.1", "private_use"},
		{"::8.8.8.8", "ipv4_compatible_deprecated"}, // special whatever is inside
		{"fe80::1%eth0", "link_local_unicast"},
	}
}

// TestBlocksCovered checks every block of the registries at its first address,
// so that a block added to the data is classified without a line of code.
func TestBlocksCovered(t *testing.T) {
	if n := len(blocks()); n < 50 {
		t.Fatalf("only %d blocks read", n)
	}
	for _, b := range blocks() {
		a := b.prefix.Addr()
		if _, _, embeds := Embedded(a); embeds || a.Is4In6() {
			continue // judged by the IPv4 inside
		}
		if Class(a) == "" {
			t.Errorf("%s (%s) passes for public", b.prefix, b.class)
		}
	}
}

func TestNamesSpecial(t *testing.T) {
	for in, want := range map[string]bool{
		"10.0.0.0/8": true, "10.1.2.3/32": true, "127.0.0.0/8": true, "fd00::/8": true, "169.254.169.254/32": true,
		"0.0.0.0/0": false, "::/0": false, "10.0.0.0/7": false, "8.8.8.0/24": false,
		"64:ff9b::/96": false, "64:ff9b::a00:0/104": true, "64:ff9b::808:808/128": false,
		"2002::/16": false, "2002:a00::/24": true, "2002:a00:1::/48": true, "2001::/32": false, "::a00:1/128": true,
	} {
		if got := Names(netip.MustParsePrefix(in)); got != want {
			t.Errorf("Names(%s) = %t, want %t", in, got, want)
		}
	}
}
