package fetch

import (
	"crypto/x509"
	"net/http"
	"strings"
)

// refusal is what the session's gate says about a request that it did not let
// through or could not serve.
type refusal struct {
	reason string // X-Egressd-Reason
	words  string // one line of what stood in the way
	remedy string // what would allow it; ""
}

// gateCA is the authority of intercepted sessions.
const gateCA = "egressd session CA"

// fromGate reads an answer of the gate itself: Proxy-Status (RFC 9209) names it.
func fromGate(h http.Header, t *Target, body string) *refusal {
	status := h.Get("Proxy-Status")
	if !strings.HasPrefix(status, "egressd;") || !strings.Contains(status, "; error=") {
		return nil
	}
	r := &refusal{reason: h.Get("X-Egressd-Reason"), words: h.Get("X-Egressd-Reason")}
	if _, details, ok := strings.Cut(status, `details="`); ok {
		r.words = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(strings.TrimSuffix(details, `"`))
	}
	r.words = oneLine(r.words, 300)
	r.remedy = remedyOf(body, t)
	return r
}

// remedyOf finds the line about what to add to the policy.
//
// Threat: an origin over plain HTTP forges an answer of the gate to have an agent
// ask for a rule of its choice -> the rule is shown only when it names the host
// that was asked for; inside TLS only what the session CA signed counts.
func remedyOf(body string, t *Target) string {
	_, text, ok := strings.Cut(body, "\nTo allow it, ")
	if !ok {
		return ""
	}
	line, rest, _ := strings.Cut(text, "\n")
	if strings.HasSuffix(line, ":") {
		rule, _, _ := strings.Cut(rest, "\n")
		line += " " + strings.TrimPrefix(strings.TrimSpace(rule), "- ")
	}
	if !strings.Contains(line, t.Host) {
		return ""
	}
	return "to allow it, " + oneLine(line, 300)
}

func oneLine(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
}

// failure is r in curl's words.
func (r *refusal) failure(t *Target, method string, status int) *Failure {
	f := r.upstream(t, status)
	if f != nil {
		return f
	}
	f = &Failure{Code: ExitConnect, Denied: true}
	switch r.reason {
	case "method_not_listed":
		f.Code, f.Text = ExitURL, "HTTP method '"+method+"' not allowed: "+t.String()+": "+r.words
	case "no_policy", "host_not_listed", "port_not_listed", "path_not_listed", "not_approved", "outside_ceiling":
		f.Text = "Network access denied: URL not in allow-list: " + t.String() + " (" + r.words + ")"
	default:
		f.Text = "Network access denied: " + t.String() + " (" + r.words + ")"
	}
	if r.remedy != "" {
		f.Text += "; " + r.remedy
	}
	return f
}

// upstream is what happened beyond the gate, in the words of a curl that had
// connected by itself; nil: the gate refused.
func (r *refusal) upstream(t *Target, status int) *Failure {
	connect := "Failed to connect to %s port %d: Couldn't connect to server"
	switch r.reason {
	case "destination_not_found", "dns_error":
		return Fail(ExitResolve, "Could not resolve host: %s", t.Host)
	case "dns_timeout":
		return Fail(ExitTimeout, "Resolving timed out: %s", t.Host)
	case "connection_refused", "destination_unavailable":
		return Fail(ExitConnect, connect, t.Host, t.Port)
	case "connection_timeout":
		return Fail(ExitTimeout, connect, t.Host, t.Port)
	case "tls_certificate_error":
		return Fail(ExitVerify, "SSL certificate problem: %s", r.words)
	case "connection_terminated":
		return Fail(ExitEmpty, "Empty reply from server (%s)", r.words)
	case "connection_limit_reached", "http_request_timeout", "http_request_error", "proxy_internal_error", "not_authenticated":
		return Fail(ExitReceive, "the session's gate answered %d: %s", status, r.words)
	}
	return nil
}

// byGate says whether the gate ended this TLS itself.
func byGate(chains [][]*x509.Certificate) bool {
	for _, chain := range chains {
		if len(chain) > 1 && chain[len(chain)-1].Subject.CommonName == gateCA {
			return true
		}
	}
	return false
}
