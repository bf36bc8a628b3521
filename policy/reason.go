package policy

// Reason says why a decision fell as it did. The zero Reason is NoPolicy, which
// denies. Words come from RFC 9209 section 2.3 where it has one.
type Reason uint8

const (
	ReasonNoPolicy        Reason = iota // no policy is loaded
	ReasonAllowed                       // an allow rule (or a hosts entry) covers it
	ReasonDeniedByRule                  // a deny rule covers it
	ReasonHostNotListed                 // no rule names this host
	ReasonPortNotListed                 // rules name this host, but not this port
	ReasonMethodNotListed               // path rules cover this path, but not this method
	ReasonPathNotListed                 // path rules cover this host, but not this path
	ReasonIPProhibited                  // destination_ip_prohibited: a special-purpose address no rule names
	ReasonSNIMismatch                   // TLS whose SNI is absent, an address or another name
	ReasonHostMismatch                  // HTTP whose Host is not the judged host
	ReasonNotTLS                        // port 443 without TLS and without raw:
	ReasonNotHTTP                       // port 80 without HTTP and without raw:
	ReasonMalformed                     // http_request_error: input that cannot be read one way only
	ReasonNotApproved                   // the person asked said no, or nobody could be asked
	ReasonInterceptOff                  // the rule needs TLS interception and this run has no CA
	ReasonLoop                          // proxy_loop_detected: one of the gate's own listeners
	ReasonOverload                      // connection_limit_reached, event queue full, ...
	ReasonHeadTimeout                   // http_request_timeout: the client did not say what it wants in time
	ReasonDNSError                      // dns_error
	ReasonDNSTimeout                    // dns_timeout
	ReasonNotFound                      // destination_not_found: the name does not exist
	ReasonRefused                       // connection_refused
	ReasonConnectTimeout                // connection_timeout
	ReasonUnreachable                   // destination_unavailable
	ReasonUpstreamTLS                   // tls_certificate_error: the origin's certificate does not verify
	ReasonUpstreamError                 // connection_terminated, http_response_incomplete, ...
	ReasonProtocol                      // UDP, ICMP and other transports the gate never carries
	ReasonInternal                      // proxy_internal_error
)
