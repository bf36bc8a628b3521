//go:build linux

package netns

import (
	"testing"

	"github.com/mdlayher/netlink"
)

// The kernel writes the frame and a program inside the packet: neither may
// stop the record.
func FuzzParseLog(f *testing.F) {
	payload, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: nfulPayload + 1, Data: []byte{1}},
		{Type: nfulPayload, Data: packet4(protoUDP, 0, 1, 2, 3, 4)},
	})
	if err != nil {
		f.Fatal(err)
	}
	m := append([]byte{2, 0, 0, 1}, payload...) // struct nfgenmsg
	head := []byte{byte(16 + len(m)), 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	good := append(head, m...)
	if got := parseLog(good); len(got) != 1 || got[0].Port != 0x0304 {
		f.Fatalf("got %+v", got)
	}
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, r := range parseLog(b) {
			if r.Proto == "" || !r.Dst.IsValid() {
				t.Errorf("half a refusal: %+v", r)
			}
		}
	})
}
