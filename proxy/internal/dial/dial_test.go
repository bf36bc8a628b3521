package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"egressd/policy"
)

func TestInterleave(t *testing.T) {
	var in []netip.Addr
	for _, s := range []string{"1.0.0.1", "1.0.0.2", "2606::1", "1.0.0.3", "2606::2"} {
		in = append(in, netip.MustParseAddr(s))
	}
	if got := fmt.Sprint(Interleave(in)); got != "[1.0.0.1 2606::1 1.0.0.2 2606::2 1.0.0.3]" {
		t.Error(got)
	}
	if got := Interleave(slices.Repeat(in, 10)); len(got) != MaxAddrs {
		t.Errorf("%d addresses", len(got))
	}
}

// knownError is an error of a resolver that knows the reason.
type knownError struct{ error }

func (knownError) PolicyReason() policy.Reason { return policy.ReasonOverload }

func TestLookupReasons(t *testing.T) {
	for err, want := range map[error]policy.Reason{
		knownError{errors.New("x")}:                   policy.ReasonOverload,
		&net.DNSError{IsNotFound: true}:               policy.ReasonNotFound,
		&net.DNSError{IsTimeout: true}:                policy.ReasonDNSTimeout,
		fmt.Errorf("x: %w", context.DeadlineExceeded): policy.ReasonDNSTimeout,
		errors.New("x"):                               policy.ReasonDNSError,
	} {
		if got := LookupReason(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
