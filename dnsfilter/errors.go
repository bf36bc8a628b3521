package dnsfilter

import (
	"errors"
	"fmt"

	"egressd/policy"
)

var (
	errNoUpstreams = errors.New("no DNS upstream is set: name one with --dns-upstream ADDRESS")
	errNoName      = errors.New("not a host name")
	errBusy        = errors.New("too many look-ups at once")
	errNoAddress   = errors.New("no such host")
	errRerouted    = errors.New("the client's gate changed while it waited")
	errBug         = errors.New("a bug in the DNS filter; its log has the details")
)

// LookupError says why a name has no addresses.
type LookupError struct {
	Name   string
	Reason policy.Reason // ReasonNotFound, ReasonDNSTimeout, ReasonDNSError, ...
	Err    error

	exists bool // ReasonNotFound: the name exists, but has no addresses
}

func (e *LookupError) Error() string { return fmt.Sprintf("look up %s: %v", e.Name, e.Err) }

func (e *LookupError) Unwrap() error { return e.Err }

// PolicyReason reports Reason; proxies look for this method.
func (e *LookupError) PolicyReason() policy.Reason { return e.Reason }

// ReasonOf reports the policy reason of an error of Lookup; ReasonInternal for
// errors that are not its own and for callers that were cancelled.
func ReasonOf(err error) policy.Reason {
	if e, ok := errors.AsType[*LookupError](err); ok {
		return e.Reason
	}
	return policy.ReasonInternal
}
