package forward

import (
	"net/http"
	"testing"
)

func TestOthers(t *testing.T) {
	for _, tt := range []struct{ list, want string }{
		{``, ``},
		{`egressd; error=http_request_denied; details="x, y"`, ``},
		{`cdn.example; hit, egressd; error=x`, `cdn.example; hit`},
		{`EGRESSD;error=x,cdn.example;hit`, `cdn.example;hit`},
		{`"egressd"; error=x`, ``},
		{`cdn; details="a, egressd; error=b"`, `cdn; details="a, egressd; error=b"`},
		{`cdn; details="a\", egressd", egressd`, `cdn; details="a\", egressd"`},
		{`egressd-like; x, other`, `other`},
		{`,, egressd ,`, ``},
		{`x"y, egressd; error=z`, `x"y, egressd; error=z`},
	} {
		if got := others(tt.list); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.list, got, tt.want)
		}
	}
}

// Looking for the field costs a response without it nothing.
func TestDisownAllocates(t *testing.T) {
	h := http.Header{"Content-Type": {"text/plain"}, "Date": {"x"}}
	if n := testing.AllocsPerRun(100, func() { disown(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
