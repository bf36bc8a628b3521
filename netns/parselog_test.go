//go:build linux

package netns

import (
	"testing"

	"egressd/netns/netlink"
)

// The kernel writes the frame and a program inside the packet: neither may
// stop the record.
func FuzzParseLog(f *testing.F) {
	m := netlink.Append([]byte{2, 0, 0, 1}, // struct nfgenmsg
		netlink.Attr{Kind: nfulPayload + 1, Data: []byte{1}},
		netlink.Attr{Kind: nfulPayload, Data: packet4(protoUDP, 0, 1, 2, 3, 4)},
	)
	head := []byte{byte(16 + len(m)), 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	good := append(head, m...)
	var told []Refusal
	t := &tally{fn: func(r Refusal) { told = append(told, r) }}
	if t.take(good); len(told) != 1 || told[0].Port != 0x0304 || t.count != 0 {
		f.Fatalf("got %+v", told)
	}
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		all := tally{fn: func(r Refusal) {
			if r.Count == 0 && (r.Proto == "" || !r.Dst.IsValid()) || r.Count < 0 {
				t.Errorf("half a refusal: %+v", r)
			}
		}}
		all.take(b)
		all.report()
	})
}
