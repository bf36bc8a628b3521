package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
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

// ResponseReason maps why there is no response of an origin that was reached, and
// says it in words of ours.
func ResponseReason(err error) (policy.Reason, string) {
	var (
		cert   *tls.CertificateVerificationError
		alert  tls.AlertError
		record tls.RecordHeaderError
		timed  interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &cert):
		return policy.ReasonUpstreamTLS, cert.Err.Error()
	case errors.As(err, &alert), errors.As(err, &record):
		return policy.ReasonUpstreamTLS, "the TLS handshake with the origin failed"
	case errors.As(err, &timed) && timed.Timeout():
		return policy.ReasonConnectTimeout, ""
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return policy.ReasonUpstreamError, "the origin closed the connection before it answered"
	}
	return policy.ReasonUpstreamError, ""
}
