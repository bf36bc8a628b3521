package explain

import "egressd/policy"

// Meaning says what a reason means to a person.
func Meaning(r policy.Reason) string {
	words := [...]string{
		policy.ReasonNoPolicy:          "no policy is loaded, so everything is denied",
		policy.ReasonAllowed:           "a rule allows it",
		policy.ReasonDeniedByRule:      "a deny rule covers it",
		policy.ReasonHostNotListed:     "no rule names this host",
		policy.ReasonPortNotListed:     "rules name this host, but not this port",
		policy.ReasonMethodNotListed:   "rules cover this path, but not with this method",
		policy.ReasonPathNotListed:     "rules cover this host, but not this path",
		policy.ReasonIPProhibited:      "a private, local or otherwise special address that no rule names",
		policy.ReasonSNIMismatch:       "the TLS server name is missing, or is not the judged host",
		policy.ReasonHostMismatch:      "the HTTP Host is not the judged host",
		policy.ReasonNotTLS:            "port 443 must speak TLS; a raw: rule lifts that",
		policy.ReasonNotHTTP:           "port 80 must speak HTTP; a raw: rule lifts that",
		policy.ReasonMalformed:         "it can be read in more than one way",
		policy.ReasonNotApproved:       "the person asked said no, or nobody could be asked",
		policy.ReasonInterceptOff:      "the rule needs TLS interception, which this run does not have",
		policy.ReasonLoop:              "it is one of the gate's own listeners",
		policy.ReasonOverload:          "a limit is reached",
		policy.ReasonRecordUnavailable: "the record cannot be written, and what is not on record does not pass",
		policy.ReasonHeadTimeout:       "the client did not say in time what it wants",
		policy.ReasonDNSError:          "the name could not be resolved",
		policy.ReasonDNSTimeout:        "the resolver did not answer in time",
		policy.ReasonNotFound:          "the name does not exist",
		policy.ReasonRefused:           "the origin refused the connection",
		policy.ReasonConnectTimeout:    "the origin did not answer in time",
		policy.ReasonUnreachable:       "the origin cannot be reached",
		policy.ReasonUpstreamTLS:       "the origin's certificate does not verify",
		policy.ReasonUpstreamError:     "the origin broke off",
		policy.ReasonProtocol:          "the gate carries TCP only",
		policy.ReasonNotAuthenticated:  "no credentials, or none that the gate knows",
		policy.ReasonCeiling:           "the daemon that serves this session does not allow it: its operator must change the ceiling policy",
		policy.ReasonReflects:          "the answer to this request would be the request itself, with what the gate puts into it",
		policy.ReasonOverride:          "a field or the query names another method, path or host than the request",
		policy.ReasonMisplaced:         "the placeholder of a secret stands where the policy does not send the secret",
		policy.ReasonClientClosed:      "the client ended the connection without a word; nothing was refused",
		policy.ReasonProxyRefused:      "the upstream proxy of this network refused it",
		policy.ReasonProxyLogin:        "the upstream proxy of this network wants a login that the gate does not have",
		policy.ReasonProxyFailed:       "the upstream proxy of this network cannot be reached, or does not speak HTTP",
		policy.ReasonInternal:          "a bug in the gate",
	}
	if int(r) < len(words) {
		return words[r]
	}
	return "unknown"
}
