package policy

// Reason says why a decision fell as it did. The zero Reason is NoPolicy, which
// denies. Words come from RFC 9209 section 2.3 where it has one.
type Reason uint8

const (
	ReasonNoPolicy          Reason = iota // no policy is loaded
	ReasonAllowed                         // an allow rule (or a hosts entry) covers it
	ReasonDeniedByRule                    // a deny rule covers it
	ReasonHostNotListed                   // no rule names this host
	ReasonPortNotListed                   // rules name this host, but not this port
	ReasonMethodNotListed                 // path rules cover this path, but not this method
	ReasonPathNotListed                   // path rules cover this host, but not this path
	ReasonIPProhibited                    // destination_ip_prohibited: a special-purpose address, or this machine's own, that no rule names
	ReasonSNIMismatch                     // TLS whose SNI is absent, an address or another name
	ReasonHostMismatch                    // HTTP whose Host is not the judged host
	ReasonNotTLS                          // port 443 without TLS and without raw:
	ReasonNotHTTP                         // port 80 without HTTP and without raw:
	ReasonMalformed                       // http_request_error: input that cannot be read one way only
	ReasonNotApproved                     // the person asked said no, or nobody could be asked
	ReasonInterceptOff                    // the rule needs TLS interception and this run has no CA
	ReasonLoop                            // proxy_loop_detected: one of the gate's own listeners
	ReasonOverload                        // connection_limit_reached
	ReasonHeadTimeout                     // http_request_timeout: the client did not say what it wants in time
	ReasonDNSError                        // dns_error
	ReasonDNSTimeout                      // dns_timeout
	ReasonNotFound                        // destination_not_found: the name does not exist
	ReasonRefused                         // connection_refused
	ReasonConnectTimeout                  // connection_timeout
	ReasonUnreachable                     // destination_unavailable
	ReasonUpstreamTLS                     // tls_certificate_error: the origin's certificate does not verify
	ReasonUpstreamError                   // connection_terminated, http_response_incomplete, ...
	ReasonProtocol                        // UDP, ICMP and other transports the gate never carries
	ReasonNotAuthenticated                // not_authenticated: no credentials that this door knows
	ReasonCeiling                         // outside_ceiling: the session allows it, the daemon's ceiling policy does not
	ReasonReflects                        // reflects_request: TRACE and its kin, whose answer is the request
	ReasonOverride                        // override_refused: a field or the query names another method, path or host than was judged
	ReasonMisplaced                       // secret_misplaced: a placeholder on its way to where its secret does not go
	ReasonClientClosed                    // client_closed: the client ended the connection without a byte; nothing was refused
	ReasonProxyRefused                    // upstream_proxy_refused: the upstream proxy said no
	ReasonProxyLogin                      // upstream_proxy_login: the upstream proxy wants a login, or another one
	ReasonProxyFailed                     // upstream_proxy_failed: the upstream proxy cannot be reached or understood
	ReasonRecordUnavailable               // record_unavailable: the event cannot be written, and what is not on record does not pass
	ReasonInternal                        // proxy_internal_error
)

// Class is the kind of failure a Reason is. Doors map it to their own wire
// (HTTP status, SOCKS5 reply, DNS RCODE). The zero Class is ClassBug.
type Class uint8

const (
	ClassBug       Class = iota // the gate's own fault, or no such reason
	ClassNone                   // no failure: ReasonAllowed
	ClassMalformed              // the client's message cannot be read
	ClassDenied                 // the policy says no
	ClassUpstream               // the origin or its DNS failed
	ClassTimeout                // somebody was too slow
	ClassOverload               // a bound was reached; later may work
)

// reasonTable is total: TestReasonTable walks every Reason.
var reasonTable = [...]struct {
	word  string
	class Class
}{
	ReasonNoPolicy:          {"no_policy", ClassDenied},
	ReasonAllowed:           {"allowed", ClassNone},
	ReasonDeniedByRule:      {"denied_by_rule", ClassDenied},
	ReasonHostNotListed:     {"host_not_listed", ClassDenied},
	ReasonPortNotListed:     {"port_not_listed", ClassDenied},
	ReasonMethodNotListed:   {"method_not_listed", ClassDenied},
	ReasonPathNotListed:     {"path_not_listed", ClassDenied},
	ReasonIPProhibited:      {"destination_ip_prohibited", ClassDenied},
	ReasonSNIMismatch:       {"sni_mismatch", ClassDenied},
	ReasonHostMismatch:      {"host_mismatch", ClassDenied},
	ReasonNotTLS:            {"not_tls", ClassDenied},
	ReasonNotHTTP:           {"not_http", ClassDenied},
	ReasonMalformed:         {"http_request_error", ClassMalformed},
	ReasonNotApproved:       {"not_approved", ClassDenied},
	ReasonInterceptOff:      {"intercept_off", ClassDenied},
	ReasonLoop:              {"proxy_loop_detected", ClassDenied},
	ReasonOverload:          {"connection_limit_reached", ClassOverload},
	ReasonHeadTimeout:       {"http_request_timeout", ClassTimeout},
	ReasonDNSError:          {"dns_error", ClassUpstream},
	ReasonDNSTimeout:        {"dns_timeout", ClassTimeout},
	ReasonNotFound:          {"destination_not_found", ClassUpstream},
	ReasonRefused:           {"connection_refused", ClassUpstream},
	ReasonConnectTimeout:    {"connection_timeout", ClassTimeout},
	ReasonUnreachable:       {"destination_unavailable", ClassUpstream},
	ReasonUpstreamTLS:       {"tls_certificate_error", ClassUpstream},
	ReasonUpstreamError:     {"connection_terminated", ClassUpstream},
	ReasonProtocol:          {"protocol_not_carried", ClassDenied},
	ReasonNotAuthenticated:  {"not_authenticated", ClassDenied},
	ReasonCeiling:           {"outside_ceiling", ClassDenied},
	ReasonReflects:          {"reflects_request", ClassDenied},
	ReasonOverride:          {"override_refused", ClassDenied},
	ReasonMisplaced:         {"secret_misplaced", ClassDenied},
	ReasonClientClosed:      {"client_closed", ClassMalformed},
	ReasonProxyRefused:      {"upstream_proxy_refused", ClassUpstream},
	ReasonProxyLogin:        {"upstream_proxy_login", ClassUpstream},
	ReasonProxyFailed:       {"upstream_proxy_failed", ClassUpstream},
	ReasonRecordUnavailable: {"record_unavailable", ClassOverload},
	ReasonInternal:          {"proxy_internal_error", ClassBug},
}

// String reports the word used in events, metrics and Proxy-Status.
func (r Reason) String() string {
	if int(r) < len(reasonTable) {
		return reasonTable[r].word
	}
	return "unknown_reason"
}

// Class reports what kind of failure r is.
func (r Reason) Class() Class {
	if int(r) < len(reasonTable) {
		return reasonTable[r].class
	}
	return ClassBug
}

// String reports "deny", "allow" or "intercept".
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Intercept:
		return "intercept"
	case Deny:
	}
	return "deny"
}

func (c Class) String() string {
	switch c {
	case ClassNone:
		return "none"
	case ClassMalformed:
		return "malformed"
	case ClassDenied:
		return "denied"
	case ClassUpstream:
		return "upstream"
	case ClassTimeout:
		return "timeout"
	case ClassOverload:
		return "overload"
	case ClassBug:
	}
	return "bug"
}
