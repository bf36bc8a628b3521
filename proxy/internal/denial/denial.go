// Package denial renders a decision that is not to allow, as the client of each
// door reads it.
//
//	r := denial.Response{Request: req, Decision: d, Policy: "ci", Close: true}
//	r.Write(w, httpRequest)   // a request on a connection that may be kept
//	r.Send(conn)              // any other connection that speaks HTTP
//	conn.Write(r.SSH())       // a connection whose client has said SSH-
//	code := denial.SOCKS5(d.Reason)
//
// An HTTP response names the reason four times: as a status, as its reason phrase,
// as a Proxy-Status error type (RFC 9209), and in a body for people that says what
// to type next.
// Nothing in it repeats bytes that could be mark-up or another response.
package denial

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"egressd/policy"
)

// WriteTimeout is how long a client may take to read a denial.
const WriteTimeout = 5 * time.Second

// Implementation constants.
const (
	retryAfter     = "1" // seconds, with 503
	maxDetailBytes = 200

	// challenge asks for a session token (RFC 7617 section 2).
	challenge = `Basic realm="egressd", charset="UTF-8"`
)

// Response is everything that the client learns about a request that did not
// pass.
type Response struct {
	Request  policy.Request // zero Host: not known
	Decision policy.Decision
	// Detail is one line about this case in words of ours; it holds no bytes of
	// the client's. "": the reason says it all.
	Detail string
	Status int  // 0: the status of the reason
	Close  bool // the connection ends with this response
	// Policy names the daemon's policy that a rule would go into; "" if the
	// rules come from launch's command line.
	Policy string
}

func (d Response) code() int {
	if d.Status != 0 {
		return d.Status
	}
	return textOf(d.Decision.Reason).status
}

// header reports the header fields of the response, Content-Length apart.
func (d Response) header() http.Header {
	w := textOf(d.Decision.Reason)
	h := http.Header{
		"Content-Type":           {"text/plain; charset=utf-8"},
		"X-Content-Type-Options": {"nosniff"},
		"Cache-Control":          {"no-store"},
		"Proxy-Status":           {"egressd; error=" + w.token + "; details=" + sfString(d.why())},
		"X-Egressd-Reason":       {d.Decision.Reason.String()},
	}
	if d.code() == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfter)
	}
	if d.code() == http.StatusProxyAuthRequired {
		h.Set("Proxy-Authenticate", challenge)
	}
	if d.Close {
		h.Set("Connection", "close")
	}
	return h
}

// why says in one line what stood in the way.
func (d Response) why() string {
	words := textOf(d.Decision.Reason).words
	if d.Detail != "" {
		words += ": " + d.Detail
	}
	return printable(words, maxDetailBytes)
}

// body is what a person, or an agent that reports to one, reads: what happened,
// why, and what to type next.
func (d Response) body() string {
	var b strings.Builder
	verb := "was blocked"
	if d.code() >= http.StatusInternalServerError {
		verb = "could not be served"
	}
	fmt.Fprintf(&b, "egressd: the request%s %s.\n", d.whither(), verb)
	fmt.Fprintf(&b, "Reason: %s (%s).\n", d.why(), d.Decision.Reason)
	if rule := d.Decision.Rule; rule != nil && d.Decision.Reason == policy.ReasonDeniedByRule {
		fmt.Fprintf(&b, "Rule: deny %s (%s).\n", printable(rule.Text, maxDetailBytes), printable(rule.Pos.String(), maxDetailBytes))
	}
	if s := d.Decision.Suggest(d.Request); s != "" {
		b.WriteString(d.remedy(printable(s, maxDetailBytes)))
	}
	if hint := textOf(d.Decision.Reason).hint; hint != "" {
		b.WriteString(hint + "\n")
	}
	return b.String()
}

// remedy names the rule that would allow it, and the person who can add it.
func (d Response) remedy(rule string) string {
	if d.Policy == "" {
		return "To allow it, whoever started this run can add: --allow " + shellWord(rule) + "\n"
	}
	return fmt.Sprintf("To allow it, whoever runs egressd can add to the allow list of its policy %q:\n  - %s\n", d.Policy, strconv.Quote(rule))
}

func (d Response) whither() string {
	if d.Request.Host.IsZero() {
		return ""
	}
	return " to " + net.JoinHostPort(d.Request.Host.String(), strconv.Itoa(int(d.Request.Port)))
}

// append appends the whole HTTP/1.1 response to b. A response to HEAD has the
// length of the body, and no body.
func (d Response) append(b []byte, head bool) []byte {
	body := d.body()
	b = fmt.Appendf(b, "HTTP/1.1 %d %s\r\n", d.code(), d.Phrase())
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

// Write answers r. It ignores a client that is gone. A ResponseWriter has no way to
// set the reason phrase: the caller sees to it.
func (d Response) Write(w http.ResponseWriter, r *http.Request) {
	body := d.body()
	for name, values := range d.header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(d.code())
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body)) // the client is gone
	}
}

// Send writes the response to c, which it does not close. It ignores a client
// that is gone.
func (d Response) Send(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(WriteTimeout)) // a failed write ends the same way
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
