package denial

import (
	"errors"
	"net"
	"net/http"

	"egressd/policy"
)

// text is one reason in the words of HTTP.
type text struct {
	status int
	token  string // RFC 9209 section 2.3 proxy error type
	words  string
	hint   string // another line, if there is something to do about it
}

// textOf is the one table from reason to HTTP. A reason that it does not know
// is a bug of ours and says so.
func textOf(r policy.Reason) text {
	switch r {
	case policy.ReasonNoPolicy:
		return denied("no policy is loaded, so nothing is allowed", "")
	case policy.ReasonAllowed:
		return bug("allowed, and yet denied")
	case policy.ReasonDeniedByRule:
		return denied("a deny rule covers it", "A deny rule beats every allow rule; only removing it helps.")
	case policy.ReasonHostNotListed:
		return denied("no rule allows this host", "")
	case policy.ReasonPortNotListed:
		return denied("this host is allowed, but not on this port", "")
	case policy.ReasonMethodNotListed:
		return denied("this path is allowed, but not with this method", "")
	case policy.ReasonPathNotListed:
		return denied("this host is allowed, but not this path", "")
	case policy.ReasonIPProhibited:
		return text{
			http.StatusForbidden, "destination_ip_prohibited",
			"the address is private, set aside for a special purpose or the gate's own machine, and no rule names it", "",
		}
	case policy.ReasonSNIMismatch:
		return denied("the TLS server name is not the host that was asked for", "")
	case policy.ReasonHostMismatch:
		return denied("the Host of the request is not the host that was asked for", "")
	case policy.ReasonNotTLS:
		return denied("port 443 is for TLS, and this is not TLS", "Use https://, or have a raw: rule added for another protocol.")
	case policy.ReasonNotHTTP:
		return denied("port 80 is for HTTP, and this is not HTTP", "")
	case policy.ReasonClientClosed:
		return text{http.StatusBadRequest, "http_request_error", "the client ended the connection without a word", ""}
	case policy.ReasonMalformed:
		return text{http.StatusBadRequest, "http_request_error", "the request cannot be read in one way only", ""}
	case policy.ReasonNotAuthenticated:
		return text{
			http.StatusProxyAuthRequired, "http_request_denied", "this gate has to know who asks",
			"Send the session token as the proxy's user name, with any password or none: HTTPS_PROXY=http://TOKEN@host:port\n" +
				"(on the wire: Proxy-Authorization: Basic with base64 of TOKEN and a colon; the user name in SOCKS5, the user id in SOCKS4).",
		}
	case policy.ReasonCeiling:
		return denied("the session allows it, but the daemon it runs in does not", "Only the daemon's operator can allow it, in the policy that bounds all sessions.")
	case policy.ReasonReflects:
		return denied("the answer to this request would be the request itself, with what the gate puts into it", "")
	case policy.ReasonOverride:
		return denied("a field or the query names another method, path or host than this request", "Send the request with its own method and path, without the override.")
	case policy.ReasonMisplaced:
		return denied("the placeholder of a secret stands where the secret does not go", "The policy's secrets say which header, which host and which port it is for.")
	case policy.ReasonNotApproved:
		return denied("nobody approved it", "")
	case policy.ReasonInterceptOff:
		return denied("the rule needs a look inside TLS, which is not possible in this run", "")
	case policy.ReasonLoop:
		return text{http.StatusForbidden, "proxy_loop_detected", "the address is the gate itself", ""}
	case policy.ReasonProtocol:
		return denied("the gate does not carry this protocol", "")
	default:
		return failureOf(r)
	}
}

// failureOf is textOf for failures, which no rule decides.
func failureOf(r policy.Reason) text {
	switch r {
	case policy.ReasonOverload:
		return text{http.StatusServiceUnavailable, "connection_limit_reached", "a limit of the gate is reached", ""}
	case policy.ReasonRecordUnavailable:
		return text{
			http.StatusServiceUnavailable, "connection_limit_reached",
			"the gate cannot write its record, and what is not on record does not pass",
			"The rules allow it. Whoever runs the gate finds the cause in its log, such as a full disk; then it works again by itself.",
		}
	case policy.ReasonHeadTimeout:
		return text{http.StatusRequestTimeout, "http_request_error", "the request did not arrive in time", ""}
	case policy.ReasonDNSError:
		return upstream("dns_error", "the name could not be resolved")
	case policy.ReasonDNSTimeout:
		return timeout("dns_timeout", "the name was not resolved in time")
	case policy.ReasonNotFound:
		return upstream("destination_not_found", "the name does not exist or has no address")
	case policy.ReasonRefused:
		return upstream("connection_refused", "the origin refused the connection")
	case policy.ReasonConnectTimeout:
		return timeout("connection_timeout", "the origin did not answer in time")
	case policy.ReasonUnreachable:
		return upstream("destination_unavailable", "the origin cannot be reached")
	case policy.ReasonUpstreamTLS:
		return upstream("tls_certificate_error", "the TLS certificate of the origin does not verify")
	case policy.ReasonUpstreamError:
		return upstream("connection_terminated", "the origin broke off or answered something that is not HTTP")
	case policy.ReasonProxyRefused:
		return upstream("http_request_denied", "the upstream proxy of this network refused it")
	case policy.ReasonProxyLogin:
		return upstream("http_request_denied", "the upstream proxy of this network wants a login that the gate does not have")
	case policy.ReasonProxyFailed:
		return upstream("destination_unavailable", "the upstream proxy of this network does not work")
	case policy.ReasonInternal:
		return bug("an error inside the gate")
	default:
		return bug("a reason that has no words")
	}
}

func denied(words, hint string) text {
	return text{http.StatusForbidden, "http_request_denied", words, hint}
}

func upstream(token, words string) text {
	return text{http.StatusBadGateway, token, words, ""}
}

func timeout(token, words string) text {
	return text{http.StatusGatewayTimeout, token, words, ""}
}

func bug(words string) text {
	return text{http.StatusInternalServerError, "proxy_internal_error", words, "This should not happen; please report it."}
}

// HandshakeDetail says why a client and the gate found no common TLS.
func HandshakeDetail(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return "the client ended the TLS handshake (" + op.Err.Error() + "); it may not trust this run's certificate authority"
	}
	return "the TLS handshake with the client failed: " + err.Error()
}
