package denial

import (
	"testing"

	"egressd/policy"
)

// TestSocksReplyIsTotal gives every reason a reply, none of them "granted".
func TestSocksReplyIsTotal(t *testing.T) {
	for r := policy.ReasonNoPolicy; r <= policy.ReasonInternal; r++ {
		got := SOCKS5(r)
		if got == 0 || r.Class() == policy.ClassDenied && got != socksNotAllowed && r != policy.ReasonProtocol {
			t.Errorf("%v: reply %d", r, got)
		}
	}
}
