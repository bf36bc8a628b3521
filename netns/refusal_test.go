package netns

import (
	"net/netip"
	"testing"
)

func packet4(proto byte, fragment uint16, rest ...byte) []byte {
	b := make([]byte, 20, 20+len(rest))
	b[0], b[9] = 0x45, proto
	b[6], b[7] = byte(fragment>>8), byte(fragment)
	copy(b[12:], []byte{192, 0, 2, 1, 8, 8, 8, 8})
	return append(b, rest...)
}

func packet6(next byte, rest ...byte) []byte {
	b := make([]byte, 40, 40+len(rest))
	b[0], b[6], b[23], b[24], b[39] = 0x60, next, 1, 0x20, 9
	return append(b, rest...)
}

func TestParsePacket(t *testing.T) {
	src4, dst4 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("8.8.8.8")
	src6, dst6 := netip.MustParseAddr("::1"), netip.MustParseAddr("2000::9")
	ports := []byte{0x12, 0x34, 0x01, 0xbb, 0, 0, 0, 0}
	options := append([]byte{0x46}, packet4(protoUDP, 0)[1:]...)
	long := append([]byte{protoUDP, 1}, make([]byte, 14)...)
	for _, c := range []struct {
		name string
		in   []byte
		want Refusal
		bad  bool
	}{
		{name: "empty", bad: true},
		{name: "version 5", in: []byte{0x55}, bad: true},
		{name: "short 4", in: packet4(protoUDP, 0)[:19], bad: true},
		{name: "header of 16 bytes", in: append([]byte{0x44}, make([]byte, 40)...), bad: true},
		{name: "short 6", in: packet6(protoUDP)[:39], bad: true},
		{name: "udp", in: packet4(protoUDP, 0, ports...), want: Refusal{Proto: "udp", Src: src4, Dst: dst4, Port: 443}},
		{name: "udp without its ports", in: packet4(protoUDP, 0, 1, 2, 3), want: Refusal{Proto: "udp", Src: src4, Dst: dst4, Port: 0}},
		{name: "udp after options", in: append(options, append(make([]byte, 4), ports...)...), want: Refusal{Proto: "udp", Src: src4, Dst: dst4, Port: 443}},
		{name: "options cut off", in: options, want: Refusal{Proto: "udp", Src: src4, Dst: dst4, Port: 0}},
		{name: "first fragment", in: packet4(protoUDP, 0x2000, ports...), want: Refusal{Proto: "udp", Src: src4, Dst: dst4, Port: 443}},
		{name: "later fragment", in: packet4(protoUDP, 0x2001, ports...), want: Refusal{Proto: "udp", Src: src4, Dst: dst4, Port: 0}},
		{name: "icmp has no port", in: packet4(1, 0, ports...), want: Refusal{Proto: "icmp", Src: src4, Dst: dst4, Port: 0}},
		{name: "unnamed", in: packet4(250, 0, ports...), want: Refusal{Proto: "250", Src: src4, Dst: dst4, Port: 0}},
		{name: "udp 6", in: packet6(protoUDP, ports...), want: Refusal{Proto: "udp", Src: src6, Dst: dst6, Port: 443}},
		{name: "icmp 6", in: packet6(58, ports...), want: Refusal{Proto: "icmpv6", Src: src6, Dst: dst6, Port: 0}},
		{name: "after an extension of 16", in: packet6(protoDestOpts, append(long, ports...)...), want: Refusal{Proto: "udp", Src: src6, Dst: dst6, Port: 443}},
		{name: "extension cut off", in: packet6(protoDestOpts, long[:8]...), want: Refusal{Proto: "udp", Src: src6, Dst: dst6, Port: 0}},
		{name: "first fragment 6", in: packet6(protoFragment, append([]byte{protoUDP, 0, 0, 1, 0, 0, 0, 0}, ports...)...), want: Refusal{Proto: "udp", Src: src6, Dst: dst6, Port: 443}},
		{name: "later fragment 6", in: packet6(protoFragment, append([]byte{protoUDP, 0, 0, 9, 0, 0, 0, 0}, ports...)...), want: Refusal{Proto: "udp", Src: src6, Dst: dst6, Port: 0}},
	} {
		got, err := ParsePacket(c.in)
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

// A program inside writes these packets.
func FuzzParsePacket(f *testing.F) {
	f.Add(packet4(protoUDP, 0, 1, 2, 3, 4))
	f.Add(packet6(protoDestOpts, 17, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4))
	f.Add(packet6(protoAH, 44, 0xff))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParsePacket(b)
		if err != nil {
			if r != (Refusal{}) {
				t.Errorf("%v with an error", r)
			}
			return
		}
		if r.Proto == "" || !r.Src.IsValid() || !r.Dst.IsValid() || r.Src.Is4() != r.Dst.Is4() {
			t.Errorf("half a refusal: %+v", r)
		}
	})
}
