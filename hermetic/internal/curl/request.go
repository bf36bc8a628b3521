package curl

import (
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/internal/fetch"
)

// request is what a transfer asks for at one hop.
type request struct {
	to      *fetch.Target
	from    *fetch.Target // the first hop: what was given for it goes to its origin alone
	method  string
	body    *fetch.Payload
	forced  bool // -X
	referer string
}

// request makes the first hop.
func (x *transfer) request(t *fetch.Target) (*request, *fetch.Failure) {
	q := &request{to: t, from: t, method: http.MethodGet, referer: x.s.referer}
	switch up := x.upload; {
	case up != "":
		p, f := x.uploadPayload(up)
		if f != nil {
			return nil, f
		}
		q.method, q.body = http.MethodPut, p
	case x.s.formed:
		p, f := x.s.formPayload()
		if f != nil {
			return nil, f
		}
		q.method, q.body = http.MethodPost, p
	case x.s.head:
		q.method = http.MethodHead
	case x.s.posted && !x.s.get:
		kind := "application/x-www-form-urlencoded"
		if x.s.json {
			kind = "application/json"
		}
		q.method, q.body = http.MethodPost, fetch.BytesPayload(x.s.data, kind)
	}
	if x.s.method != "" {
		if !fetch.IsToken(x.s.method) {
			return nil, fetch.Fail(fetch.ExitURL, "URL using bad/illegal format or missing URL")
		}
		q.method, q.forced = x.s.method, true
	}
	return q, nil
}

func (x *transfer) uploadPayload(name string) (*fetch.Payload, *fetch.Failure) {
	if name == "-" || name == "." {
		in := x.c.Stdin
		return &fetch.Payload{Size: -1, Once: true, Open: func() (io.ReadCloser, error) { return io.NopCloser(in), nil }}, nil
	}
	full := x.c.Path(name)
	info, err := x.c.FS.Stat(full)
	if err == nil {
		var f io.Closer
		if f, err = x.c.FS.Open(full); err == nil {
			err = f.Close()
		}
	}
	if err != nil || info.IsDir() {
		if !x.g.silent || x.g.showError {
			_, _ = io.WriteString(x.stderr, "curl: Can't open '"+name+"'!\n"+tryHelp)
		}
		return nil, fetch.Fail(fetch.ExitRead, "Failed to open/read local data from file/application")
	}
	return &fetch.Payload{Size: info.Size(), Open: func() (io.ReadCloser, error) { return x.c.FS.Open(full) }}, nil
}

// next is q after a redirect: RFC 9110 section 15.4, as curl does it.
func (q *request) next(x *transfer, to *fetch.Target, status int) *request {
	n := *q
	n.to = to
	if x.s.autoRefer {
		n.referer = q.to.String()
	}
	keep := map[int]bool{301: x.s.post301, 302: x.s.post302, 303: x.s.post303, 307: true, 308: true}[status]
	if q.body != nil && !keep && (q.method == http.MethodPost || status == http.StatusSeeOther || q.forced) {
		n.body = nil
		if !q.forced {
			n.method = http.MethodGet
		}
	}
	return &n
}

// call makes the request ready to go out.
func (x *transfer) call(q *request) *fetch.Call {
	return &fetch.Call{
		To: q.to, Method: q.method, Fields: x.fields(q), Body: q.body, Decode: x.s.compressed,
		Connect: x.s.connect, Trust: x.trust, Dial: x.c.Proxy, Note: x.note, Clock: x.stats.clock,
	}
}

// custom are the fields of -H by lower-case name: what is there replaces ours.
type custom struct {
	fields []fetch.Field
	has    map[string]bool
}

// custom reads -H: "Name: value", "Name;" for an empty one, "Name:" to leave ours
// out.
//
// Threat: a redirect carries a secret to another origin -> Authorization and
// Cookie, from whichever option, go to the first origin alone -> other fields
// follow, as they do with every curl.
func (x *transfer) custom(q *request) custom {
	c := custom{has: map[string]bool{}}
	for _, h := range x.s.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			var empty bool
			if name, empty = strings.CutSuffix(h, ";"); !empty {
				continue
			}
		}
		name, value = strings.TrimSpace(name), strings.Trim(value, " \t\r\n")
		key := strings.ToLower(name)
		if !fetch.IsToken(name) || strings.ContainsAny(value, "\r\n\x00") {
			continue
		}
		c.has[key] = true
		if (key == "authorization" || key == "cookie") && !q.to.SameOrigin(q.from) || key == "host" && !q.to.SameOrigin(q.from) {
			continue
		}
		if ok && value == "" || key == "host" || key == "proxy-authorization" || key == "connection" || key == "content-length" && q.body == nil {
			continue
		}
		c.fields = append(c.fields, fetch.Field{Name: name, Value: value})
	}
	return c
}

// fields are all fields of the request, in curl's order.
func (x *transfer) fields(q *request) []fetch.Field {
	c := x.custom(q)
	var all []fetch.Field
	add := func(name, value string) {
		if value != "" && !c.has[strings.ToLower(name)] {
			all = append(all, fetch.Field{Name: name, Value: value})
		}
	}
	all = append(all, fetch.Field{Name: "Host", Value: x.hostField(q)})
	if q.to.SameOrigin(q.from) {
		add("Authorization", x.authorization(q))
	}
	add("Range", x.rangeField(q))
	agent := x.s.agent
	if agent == "" && !x.s.noAgent {
		agent = curlAgent
	}
	add("User-Agent", agent)
	if x.s.json && q.body != nil {
		add("Content-Type", "application/json")
		add("Accept", "application/json")
	} else {
		add("Accept", "*/*")
	}
	if x.s.compressed {
		add("Accept-Encoding", "deflate, gzip")
	}
	add("Referer", q.referer)
	text := ""
	if q.to.SameOrigin(q.from) {
		text = x.s.cookieText
	}
	add("Cookie", x.jar.Header(q.to, text))
	x.conditions(add)
	for _, f := range c.fields {
		all = append(all, f)
		c.has[strings.ToLower(f.Name)] = true
	}
	if q.body == nil {
		return all
	}
	return appendBody(all, q.body, c)
}

func appendBody(all []fetch.Field, p *fetch.Payload, c custom) []fetch.Field {
	if !c.has["transfer-encoding"] && !c.has["content-length"] {
		if p.Size < 0 {
			all = append(all, fetch.Field{Name: "Transfer-Encoding", Value: "chunked"})
		} else {
			all = append(all, fetch.Field{Name: "Content-Length", Value: strconv.FormatInt(p.Size, 10)})
		}
	}
	if p.Kind != "" && !c.has["content-type"] && p.Kind != "application/json" {
		all = append(all, fetch.Field{Name: "Content-Type", Value: p.Kind})
	}
	return all
}

// hostField is the Host: of -H for the first origin, which the gate compares
// with the URL's.
func (x *transfer) hostField(q *request) string {
	for _, h := range x.s.headers {
		if name, value, ok := strings.Cut(h, ":"); ok && strings.EqualFold(strings.TrimSpace(name), "host") && q.to.SameOrigin(q.from) {
			if value = strings.TrimSpace(value); value != "" && !strings.ContainsAny(value, "\r\n") {
				return value
			}
		}
	}
	return q.to.AuthorityText()
}

func (x *transfer) authorization(q *request) string {
	switch {
	case x.s.bearer != "":
		return "Bearer " + x.s.bearer
	case x.s.loggedIn:
		login := x.s.login
		if !strings.Contains(login, ":") {
			login += ":"
		}
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(login))
	case q.from.HasUser:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(q.from.User+":"+q.from.Pass))
	}
	return ""
}

func (x *transfer) rangeField(q *request) string {
	switch {
	case x.s.ranges != "":
		return "bytes=" + x.s.ranges
	case x.s.resumed && x.dest.offset > 0 && q.body == nil:
		return "bytes=" + strconv.FormatInt(x.dest.offset, 10) + "-"
	}
	return ""
}

// conditions are If-Modified-Since and If-None-Match.
func (x *transfer) conditions(add func(name, value string)) {
	if s := x.s.since; s != "" {
		name := "If-Modified-Since"
		if rest, ok := strings.CutPrefix(s, "-"); ok {
			name, s = "If-Unmodified-Since", rest
		}
		s = strings.TrimPrefix(s, "=")
		at, ok := parseDate(s)
		if info, err := x.c.FS.Stat(x.c.Path(s)); !ok && err == nil {
			at, ok = info.ModTime(), true
		}
		if ok {
			add(name, at.UTC().Format(http.TimeFormat))
		}
	}
	if x.s.etagFrom != "" {
		p := &parser{c: x.c}
		tag, _ := fetch.Slurp(p.c, x.s.etagFrom) // a missing file is an empty tag, as in curl
		value := strings.TrimSpace(string(tag))
		if value == "" {
			value = `""`
		}
		add("If-None-Match", value)
	}
}

// parseDate reads the dates that people give to -z.
func parseDate(s string) (time.Time, bool) {
	for _, layout := range []string{
		http.TimeFormat, time.RFC1123Z, time.RFC850, time.ANSIC, time.RFC3339, "2006-01-02 15:04:05", "2006-01-02", "20060102",
		"02 Jan 2006 15:04:05", "02 Jan 2006", "Jan 2 2006", "Jan 2, 2006", "2 Jan 2006",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
