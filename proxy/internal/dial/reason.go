package dial

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"egressd/policy"
	"egressd/proxy/internal/socket"
)

// LookupReason maps a Resolver's error. Resolvers that know better say so
// with a PolicyReason method.
func LookupReason(err error) policy.Reason {
	var known interface{ PolicyReason() policy.Reason }
	var dns *net.DNSError
	switch {
	case errors.As(err, &known):
		return known.PolicyReason()
	case errors.As(err, &dns) && dns.IsNotFound:
		return policy.ReasonNotFound
	case errors.As(err, &dns) && dns.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return policy.ReasonDNSTimeout
	}
	return policy.ReasonDNSError
}

// Reason maps what the operating system said about an attempt.
func Reason(err error) policy.Reason {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return policy.ReasonRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return policy.ReasonConnectTimeout
	case socket.OutOfFiles(err), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EAGAIN):
		return policy.ReasonOverload
	}
	return policy.ReasonUnreachable
}
