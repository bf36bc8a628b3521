//go:build linux

package netns

import "testing"

// The kernel writes the frame and a program inside the packet: neither may
// stop the record.
func FuzzParseLog(f *testing.F) {
	m := append(nfgenmsg(2, 1), attributes(text(nfulPayload, string(packet4(protoUDP, 0, 1, 2, 3, 4))))...)
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
