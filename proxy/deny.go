package proxy

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"egressd/policy"
)

// Implementation constants.
const (
	denyWriteTimeout = 5 * time.Second
	retryAfter       = "1" // seconds, with 503
	maxDetailBytes   = 200

	// challenge asks for a session token (RFC 7617 section 2).
	challenge = `Basic realm="egressd", charset="UTF-8"`
)

// because is the denial with reason r that no rule decided.
func because(r policy.Reason) policy.Decision { return policy.Decision{Reason: r} }

// refusal is a denial and what is to be said about it.
type refusal struct {
	d      policy.Decision
	detail string
}

func refuseFor(r policy.Reason, detail string) *refusal { return &refusal{because(r), detail} }

// denial is everything that the client learns about a request that did not pass.
type denial struct {
	req policy.Request
	dec policy.Decision
	// detail is one line about this case in words of ours; it holds no bytes of
	// the client's.
	detail string
	status int  // 0: the status of the reason
	close  bool // the connection ends with this response
	// policy names the daemon's policy that a rule would go into; "" if the
	// rules come from launch's command line.
	policy string
}

func (d denial) code() int {
	if d.status != 0 {
		return d.status
	}
	return denialOf(d.dec.Reason).status
}

// header reports the header fields of the response, Content-Length apart.
func (d denial) header() http.Header {
	w := denialOf(d.dec.Reason)
	h := http.Header{
		"Content-Type":           {"text/plain; charset=utf-8"},
		"X-Content-Type-Options": {"nosniff"},
		"Cache-Control":          {"no-store"},
		"Proxy-Status":           {"egressd; error=" + w.token + "; details=" + sfString(d.why())},
		"X-Egressd-Reason":       {d.dec.Reason.String()},
	}
	if d.code() == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	if d.code() == http.StatusProxyAuthRequired {
		h.Set("Proxy-Authenticate", challenge)
	}
	if d.close {
		h.Set("Connection", "close")
	}
	return h
}

// why says in one line what stood in the way.
func (d denial) why() string {
	words := denialOf(d.dec.Reason).words
	if d.detail != "" {
		words += ": " + d.detail
	}
	return printable(words, maxDetailBytes)
}

// body is what a person, or an agent that reports to one, reads: what happened,
// why, and what to type next.
func (d denial) body() string {
	var b strings.Builder
	verb := "was blocked"
	if d.code() >= http.StatusInternalServerError {
		verb = "could not be served"
	}
	fmt.Fprintf(&b, "egressd: the request%s %s.\n", d.whither(), verb)
	fmt.Fprintf(&b, "Reason: %s (%s).\n", d.why(), d.dec.Reason)
	if rule := d.dec.Rule; rule != nil && d.dec.Reason == policy.ReasonDeniedByRule {
		fmt.Fprintf(&b, "Rule: deny %s (%s).\n", printable(rule.Text, maxDetailBytes), printable(rule.Pos.String(), maxDetailBytes))
	}
	if s := d.dec.Suggest(d.req); s != "" {
		b.WriteString(d.remedy(printable(s, maxDetailBytes)))
	}
	if hint := denialOf(d.dec.Reason).hint; hint != "" {
		b.WriteString(hint + "\n")
	}
	return b.String()
}

// remedy names the rule that would allow it, and the person who can add it.
func (d denial) remedy(rule string) string {
	if d.policy == "" {
		return "To allow it, whoever started this run can add: --allow " + shellWord(rule) + "\n"
	}
	return fmt.Sprintf("To allow it, whoever runs egressd can add to the allow list of its policy %q:\n  - %s\n", d.policy, strconv.Quote(rule))
}

func (d denial) whither() string {
	if d.req.Host.IsZero() {
		return ""
	}
	return " to " + net.JoinHostPort(d.req.Host.String(), strconv.Itoa(int(d.req.Port)))
}

// append appends the whole HTTP/1.1 response to b. A response to HEAD has the
// length of the body, and no body.
func (d denial) append(b []byte, head bool) []byte {
	body := d.body()
	b = fmt.Appendf(b, "HTTP/1.1 %d %s\r\n", d.code(), http.StatusText(d.code()))
	h := d.header()
	h.Set("Content-Length", strconv.Itoa(len(body)))
	var fields strings.Builder
	_ = h.Write(&fields) // a strings.Builder never fails
	b = append(b, fields.String()...)
	b = append(b, "\r\n"...)
	if !head {
		b = append(b, body...)
	}
	return b
}

// write answers a request that net/http has read.
func (d denial) write(w http.ResponseWriter, r *http.Request) {
	body := d.body()
	for name, values := range d.header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(d.code())
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body)) // the client is gone; net/http closes
	}
}

// denyHTTP writes the response for d (403, 400, 502, 503, 504) to c and says
// that the connection ends with it. It does not close c. detail says what was
// wrong with a request that could not be read; r.Host is zero then.
func (s *Server) denyHTTP(c net.Conn, r policy.Request, d policy.Decision, detail string) {
	denial{req: r, dec: d, detail: detail, policy: s.PolicyName, close: true}.send(c)
}

// send writes the response to c.
func (d denial) send(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(denyWriteTimeout)) // a failed write ends the same way
	_, _ = c.Write(d.append(nil, false))
}

// printable keeps what is printable ASCII and free of mark-up, and at most n
// bytes.
func printable(s string, n int) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < n; i++ {
		switch c := s[i]; {
		case c == '<' || c == '>' || c == '&':
			fmt.Fprintf(&b, "%%%02X", c)
		case c < ' ' || c >= 0x7f:
			b.WriteByte('?')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// sfString is s, which is printable ASCII, as a structured field string (RFC
// 9651 section 3.3.3).
func sfString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// shellWord quotes s if a shell would split or expand it.
func shellWord(s string) string {
	if strings.ContainsAny(s, " *?[]{}()$`;|'\"\\!~#") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
