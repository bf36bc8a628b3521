package web

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"time"
)

// request is what a transfer asks for at one hop.
type request struct {
	to      *target
	from    *target // the first hop: what was given for it goes to its origin alone
	method  string
	body    *payload
	forced  bool // -X
	referer string
}

// request makes the first hop.
func (x *transfer) request(t *target) (*request, *failure) {
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
		q.method, q.body = http.MethodPost, bytesPayload(x.s.data, kind)
	}
	if x.s.method != "" {
		if !isToken(x.s.method) {
			return nil, fail(exitURL, "URL using bad/illegal format or missing URL")
		}
		q.method, q.forced = x.s.method, true
	}
	return q, nil
}

func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlpha(c) && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func (x *transfer) uploadPayload(name string) (*payload, *failure) {
	if name == "-" || name == "." {
		in := x.c.Stdin
		return &payload{size: -1, once: true, open: func() (io.ReadCloser, error) { return io.NopCloser(in), nil }}, nil
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
		return nil, fail(exitRead, "Failed to open/read local data from file/application")
	}
	return &payload{size: info.Size(), open: func() (io.ReadCloser, error) { return x.c.FS.Open(full) }}, nil
}

// next is q after a redirect: RFC 9110 section 15.4, as curl does it.
func (q *request) next(x *transfer, to *target, status int) *request {
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
func (x *transfer) call(q *request) *call {
	return &call{
		to: q.to, method: q.method, fields: x.fields(q), body: q.body, decode: x.s.compressed,
		connect: x.s.connect, trust: x.trust, dial: x.c.Proxy, note: x.note, clock: x.stats.clock,
	}
}

// custom are the fields of -H by lower-case name: what is there replaces ours.
type custom struct {
	fields []field
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
		if !isToken(name) || strings.ContainsAny(value, "\r\n\x00") {
			continue
		}
		c.has[key] = true
		if (key == "authorization" || key == "cookie") && !q.to.sameOrigin(q.from) || key == "host" && !q.to.sameOrigin(q.from) {
			continue
		}
		if ok && value == "" || key == "host" || key == "proxy-authorization" || key == "connection" || key == "content-length" && q.body == nil {
			continue
		}
		c.fields = append(c.fields, field{name, value})
	}
	return c
}

// fields are all fields of the request, in curl's order.
func (x *transfer) fields(q *request) []field {
	c := x.custom(q)
	var all []field
	add := func(name, value string) {
		if value != "" && !c.has[strings.ToLower(name)] {
			all = append(all, field{name, value})
		}
	}
	all = append(all, field{"Host", x.hostField(q)})
	if q.to.sameOrigin(q.from) {
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
	if q.to.sameOrigin(q.from) {
		text = x.s.cookieText
	}
	add("Cookie", x.jar.header(q.to, text))
	x.conditions(add)
	for _, f := range c.fields {
		all = append(all, f)
		c.has[strings.ToLower(f.name)] = true
	}
	if q.body == nil {
		return all
	}
	return appendBody(all, q.body, c)
}

func appendBody(all []field, p *payload, c custom) []field {
	if !c.has["transfer-encoding"] && !c.has["content-length"] {
		if p.size < 0 {
			all = append(all, field{"Transfer-Encoding", "chunked"})
		} else {
			all = append(all, field{"Content-Length", itoa(p.size)})
		}
	}
	if p.kind != "" && !c.has["content-type"] && p.kind != "application/json" {
		all = append(all, field{"Content-Type", p.kind})
	}
	return all
}

// hostField is the Host: of -H for the first origin, which the gate compares
// with the URL's.
func (x *transfer) hostField(q *request) string {
	for _, h := range x.s.headers {
		if name, value, ok := strings.Cut(h, ":"); ok && strings.EqualFold(strings.TrimSpace(name), "host") && q.to.sameOrigin(q.from) {
			if value = strings.TrimSpace(value); value != "" && !strings.ContainsAny(value, "\r\n") {
				return value
			}
		}
	}
	return q.to.authorityText()
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
	case q.from.hasUser:
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(q.from.user+":"+q.from.pass))
	}
	return ""
}

func (x *transfer) rangeField(q *request) string {
	switch {
	case x.s.ranges != "":
		return "bytes=" + x.s.ranges
	case x.s.resumed && x.dest.offset > 0 && q.body == nil:
		return "bytes=" + itoa(x.dest.offset) + "-"
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
		tag, _ := p.slurp(x.s.etagFrom) // a missing file is an empty tag, as in curl
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
