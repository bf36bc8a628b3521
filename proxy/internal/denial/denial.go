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
	mostFields     = 9
	firstBodyBytes = 512 // almost all bodies fit
	firstBytes     = 2 << 10

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

// field is one header field.
type field struct{ name, value string }

// fields appends the header fields of a response with so long a body, in the order
// of their names.
func (d Response) fields(f []field, bodyBytes int) []field {
	w := textOf(d.Decision.Reason)
	f = append(f, field{"Cache-Control", "no-store"})
	if d.Close {
		f = append(f, field{"Connection", "close"})
	}
	f = append(f, field{"Content-Length", strconv.Itoa(bodyBytes)}, field{"Content-Type", "text/plain; charset=utf-8"})
	if d.code() == http.StatusProxyAuthRequired {
		f = append(f, field{"Proxy-Authenticate", challenge})
	}
	f = append(f, field{"Proxy-Status", "egressd; error=" + w.token + "; details=" + sfString(d.why())})
	if d.code() == http.StatusServiceUnavailable {
		f = append(f, field{"Retry-After", retryAfter})
	}
	return append(f, field{"X-Content-Type-Options", "nosniff"}, field{"X-Egressd-Reason", d.Decision.Reason.String()})
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
func (d Response) body() []byte {
	b := make([]byte, 0, firstBodyBytes)
	verb := " was blocked.\nReason: "
	if d.code() >= http.StatusInternalServerError {
		verb = " could not be served.\nReason: "
	}
	b = append(append(append(b, "egressd: the request"...), d.whither()...), verb...)
	b = append(append(append(b, d.why()...), " ("...), d.Decision.Reason.String()...)
	b = append(b, ").\n"...)
	if rule := d.Decision.Rule; rule != nil && d.Decision.Reason == policy.ReasonDeniedByRule {
		b = fmt.Appendf(b, "Rule: deny %s (%s).\n", printable(rule.Text, maxDetailBytes), printable(rule.Pos.String(), maxDetailBytes))
	}
	if s := d.Decision.Suggest(d.Request); s != "" {
		b = append(b, d.remedy(printable(s, maxDetailBytes))...)
	}
	if hint := textOf(d.Decision.Reason).hint; hint != "" {
		b = append(append(b, hint...), '\n')
	}
	return b
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
	b = strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(d.code()), 10)
	b = append(append(append(b, ' '), d.Phrase()...), "\r\n"...)
	var room [mostFields]field
	for _, f := range d.fields(room[:0], len(body)) {
		b = append(append(append(append(b, f.name...), ": "...), f.value...), "\r\n"...)
	}
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
	var room [mostFields]field
	h := w.Header()
	for _, f := range d.fields(room[:0], len(body)) {
		h[f.name] = []string{f.value}
	}
	w.WriteHeader(d.code())
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client is gone
	}
}

// Send writes the response to c, which it does not close. It ignores a client
// that is gone.
func (d Response) Send(c net.Conn) {
	_ = c.SetWriteDeadline(time.Now().Add(WriteTimeout)) // a failed write ends the same way
	_, _ = c.Write(d.append(make([]byte, 0, firstBytes), false))
}

// printable keeps what is printable ASCII and free of mark-up, and at most n
// bytes.
func printable(s string, n int) string {
	if len(s) <= n && !strings.ContainsFunc(s, needsCare) {
		return s
	}
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

// needsCare reports whether printable changes r.
func needsCare(r rune) bool { return r < ' ' || r >= 0x7f || r == '<' || r == '>' || r == '&' }

// sfString is s, which is printable ASCII, as a structured field string (RFC
// 9651 section 3.3.3).
func sfString(s string) string {
	b := append(make([]byte, 0, len(s)+len(`""`)), '"')
	for i := range len(s) {
		if s[i] == '\\' || s[i] == '"' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(append(b, '"'))
}

// shellWord quotes s if a shell would split or expand it.
func shellWord(s string) string {
	if strings.ContainsAny(s, " *?[]{}()$`;|'\"\\!~#") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
