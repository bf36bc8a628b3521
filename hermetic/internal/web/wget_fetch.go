package web

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"egressd/hermetic/command"
)

// fetch is one URL of a wget.
type fetch struct {
	*getter
	asked  string
	first  *target
	to     *target
	try    int
	login  bool
	body   *payload
	method string

	name   string // the file; "" with -O
	had    int64  // bytes that are there already, with -c
	since  time.Time
	chosen bool
}

func (g *getter) one(ctx context.Context, asked string) int {
	t, f := parseURL(asked, "http", false)
	switch {
	case f != nil:
		g.say("%s: Invalid host name.\n", asked)
		return wgetGeneric
	case t.scheme != "http" && t.scheme != "https":
		fmt.Fprintf(g.log, "%s: Unsupported scheme ‘%s’.\n", asked, t.scheme)
		return wgetGeneric
	case g.s.httpsOnly && t.scheme != "https":
		return 0
	}
	x := &fetch{getter: g, asked: asked, first: t, to: t, login: g.s.authNow}
	if status := x.prepare(); status != 0 {
		return status
	}
	if g.s.output == "" && !g.s.spider {
		x.name = x.local(t)
		if _, err := g.c.FS.Stat(g.c.Path(x.name)); err == nil && g.s.keepOld {
			g.chat("File ‘%s’ already there; not retrieving.\n\n", x.name)
			return 0
		}
	}
	if g.s.spider {
		g.chat("Spider mode enabled. Check if remote file exists.\n")
	}
	for x.try = 1; ; x.try++ {
		status, again := x.attempt(ctx)
		if !again {
			return status
		}
		if x.try >= g.s.tries {
			g.chat("Giving up.\n\n")
			return status
		}
		g.chat("Retrying.\n\n")
		if !pause(ctx, min(time.Duration(x.try)*time.Second, g.s.retryWait)) {
			return status
		}
		x.to, x.method = x.first, ""
		if status := x.prepare(); status != 0 {
			return status
		}
	}
}

// prepare chooses method and body.
func (x *fetch) prepare() int {
	x.method, x.body = x.s.method, nil
	if x.s.spider && x.method == "" {
		x.method = http.MethodHead
	}
	if x.method == "" {
		x.method = http.MethodGet
	}
	if !isToken(x.method) {
		x.c.Errorf("Invalid method ‘%s’.", x.method)
		return wgetGeneric
	}
	if !x.s.post {
		return 0
	}
	const kind = "application/x-www-form-urlencoded"
	if x.s.bodyFile == "" {
		x.body = bytesPayload([]byte(x.s.body), kind)
		return 0
	}
	full := x.c.Path(x.s.bodyFile)
	info, err := x.c.FS.Stat(full)
	if err != nil {
		fmt.Fprintf(x.log, "BODY data file ‘%s’ missing: %s\n", x.s.bodyFile, command.Reason(err))
		return wgetFile
	}
	x.body = &payload{size: info.Size(), kind: kind, open: func() (io.ReadCloser, error) { return x.c.FS.Open(full) }}
	return 0
}

// local is the name that a URL gives its file.
func (x *fetch) local(t *target) string {
	name := unescape(path.Base(t.path))
	if strings.HasSuffix(t.path, "/") {
		name = "index.html"
	}
	if t.query != "" {
		name += strings.ReplaceAll(t.query, "/", "%2F")
	}
	if name = safeName(strings.ReplaceAll(name, "/", "%2F")); name == "" {
		name = "index.html"
	}
	return x.placed(name)
}

func (x *fetch) placed(name string) string {
	if x.s.prefix == "" || x.s.prefix == "." {
		return name
	}
	return strings.TrimSuffix(x.s.prefix, "/") + "/" + name
}

// attempt makes one try with its redirects; again says that another may help.
func (x *fetch) attempt(ctx context.Context) (status int, again bool) {
	for redirects := 0; ; redirects++ {
		again := ""
		if x.try > 1 {
			again = fmt.Sprintf("(try:%2d) ", x.try)
		}
		x.chat("--%s--  %s%s\n", x.stamp(), again, x.to)
		a, cancel, f := x.ask(ctx)
		if f != nil {
			cancel()
			return x.failed(f)
		}
		status, retry, next := x.answered(ctx, a, redirects)
		a.close()
		cancel()
		if next == nil {
			return status, retry
		}
		x.to = next
	}
}

func (x *fetch) ask(parent context.Context) (*answer, context.CancelFunc, *failure) {
	ctx, cancel := parent, context.CancelFunc(func() {})
	if x.s.timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(parent, x.s.timeout, errTotal)
	}
	x.resume()
	x.chat("Connecting to %s... ", x.to.host+":"+itoa(int64(x.to.port)))
	c := &call{
		to: x.to, method: x.method, fields: x.fields(), body: x.body, trust: x.trust, dial: x.c.Proxy,
		note: func(byte, string) {}, clock: clocks{now: x.c.Now, start: x.c.Now()},
	}
	a, f := c.do(ctx)
	if f == nil {
		x.chat("connected.\nHTTP request sent, awaiting response... ")
	}
	return a, cancel, f
}

// resume looks at the file that is there, for -c and -N.
func (x *fetch) resume() {
	x.had, x.since = 0, time.Time{}
	name := x.name
	if x.s.output != "" {
		name = x.s.output
	}
	if name == "" || name == "-" {
		return
	}
	info, err := x.c.FS.Stat(x.c.Path(name))
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if x.s.resume || x.try > 1 && x.chosen {
		x.had = info.Size()
	}
	if x.s.newer && x.s.output == "" {
		x.since = info.ModTime()
	}
}

func (x *fetch) fields() []field {
	all := []field{{"Host", x.to.authorityText()}}
	set := func(name, value string) {
		for i := range all {
			if strings.EqualFold(all[i].name, name) {
				all[i].value = value
				return
			}
		}
		all = append(all, field{name, value})
	}
	if x.had > 0 {
		set("Range", "bytes="+itoa(x.had)+"-")
	}
	if !x.since.IsZero() {
		set("If-Modified-Since", x.since.UTC().Format(http.TimeFormat))
	}
	if x.s.noCache {
		set("Cache-Control", "no-cache")
		set("Pragma", "no-cache")
	}
	if x.s.referer != "" {
		set("Referer", x.s.referer)
	}
	all = append(all, field{"User-Agent", x.s.agent}, field{"Accept", "*/*"}, field{"Accept-Encoding", "identity"})
	user, pass := x.s.user, x.s.password
	if x.first.hasUser {
		user, pass = x.first.user, x.first.pass
	}
	if x.login && user != "" && x.to.sameOrigin(x.first) {
		set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+pass)))
	}
	if cookies := x.jar.header(x.to, ""); cookies != "" && !x.s.noCookies {
		set("Cookie", cookies)
	}
	if x.body != nil {
		set("Content-Type", x.body.kind)
		set("Content-Length", itoa(x.body.size))
	} else if x.method == http.MethodPost {
		set("Content-Length", "0")
	}
	for _, h := range x.s.headers {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		key := strings.ToLower(name)
		if !ok || !isToken(name) || strings.ContainsAny(value, "\r\n\x00") || key == "content-length" || key == "transfer-encoding" || key == "connection" {
			continue
		}
		if (key == "authorization" || key == "cookie" || key == "host") && !x.to.sameOrigin(x.first) {
			continue // as with curl: a secret for one origin stays with it
		}
		set(name, value)
	}
	return all
}

// failed tells a failure in wget's words; again says that another try may help.
func (x *fetch) failed(f *failure) (status int, again bool) {
	switch {
	case f.denied:
		x.chat("failed.\n")
		fmt.Fprintf(x.log, "wget: %s\n", f.text) // with -q too: nobody would know why
		return wgetNetwork, false
	case f.code == exitResolve:
		x.chat("failed: Name or service not known.\n")
		x.say("wget: unable to resolve host address ‘%s’\n", x.to.host)
		return wgetNetwork, false
	case f.code == exitConnect:
		x.chat("failed: Connection refused.\n")
		return wgetNetwork, false
	case f.code == exitVerify || f.code == exitTLS:
		x.chat("failed.\n")
		x.say("ERROR: cannot verify %s's certificate: %s\n", x.to.host, f.text)
		return wgetTLS, false
	case f.code == exitTimeout:
		x.chat("failed: Connection timed out.\n")
		return wgetNetwork, true
	case f.code == exitEmpty:
		x.chat("connected.\nHTTP request sent, awaiting response... No data received.\n")
		return wgetNetwork, true
	case f.code == exitProtocol || f.code == exitWeird:
		x.chat("connected.\nHTTP request sent, awaiting response... \n%s\n", f.text)
		return wgetProtocol, false
	}
	x.chat("failed: %s\n", f.text)
	return wgetNetwork, true
}

// answered handles an answer; next is where it redirects to.
func (x *fetch) answered(ctx context.Context, a *answer, redirects int) (status int, again bool, next *target) {
	code := a.resp.StatusCode
	text := strings.TrimSpace(strings.TrimPrefix(a.resp.Status, itoa(int64(code))))
	if x.s.showHead {
		x.chat("\n")
		for line := range strings.SplitSeq(strings.TrimRight(strings.ReplaceAll(string(a.last), "\r", ""), "\n"), "\n") {
			fmt.Fprintf(x.log, "  %s\n", line) // with -q, too
		}
	} else {
		x.chat("%d %s\n", code, text)
	}
	if !x.s.noCookies {
		x.jar.take(x.to, a.resp.Header)
	}
	location := a.resp.Header.Get("Location")
	switch {
	case code/100 == 3 && code != 304 && location != "":
		return x.redirected(a, location, redirects)
	case code == http.StatusUnauthorized && !x.login && (x.s.user != "" || x.first.hasUser) && strings.HasPrefix(strings.ToLower(a.resp.Header.Get("WWW-Authenticate")), "basic"):
		x.login = true
		return 0, false, x.to
	case code == http.StatusUnauthorized:
		x.chat("\n")
		x.say("Username/Password Authentication Failed.\n")
		return wgetAuth, false, nil
	case x.s.spider:
		return x.looked(a, text), false, nil
	case code == http.StatusNotModified:
		x.chat("File ‘%s’ not modified on server. Omitting download.\n\n", x.name)
		return 0, false, nil
	case code == http.StatusRequestedRangeNotSatisfiable && x.had > 0:
		x.chat("\n    The file is already fully retrieved; nothing to do.\n\n")
		return 0, false, nil
	case code/100 != 2:
		return x.refused(ctx, a, text)
	}
	status, again = x.save(ctx, a)
	return status, again, nil
}

func (x *fetch) redirected(a *answer, location string, redirects int) (status int, again bool, next *target) {
	x.chat("Location: %s [following]\n", location)
	if redirects >= x.s.redirects {
		x.say("%d redirections exceeded.\n", x.s.redirects)
		return wgetServer, false, nil
	}
	to, f := x.to.follow(location, false)
	if f != nil || to.scheme != "http" && to.scheme != "https" {
		x.say("%s: Unsupported scheme.\n", location)
		return wgetGeneric, false, nil
	}
	if code := a.resp.StatusCode; code != 307 && code != 308 && x.method != http.MethodHead && (x.method == http.MethodPost || code == 303) {
		x.method, x.body = http.MethodGet, nil
	}
	if x.s.trustNames && x.s.output == "" && !x.s.spider {
		x.name = x.local(to)
	}
	return 0, false, to
}

func (x *fetch) looked(a *answer, text string) int {
	code := a.resp.StatusCode
	if code/100 != 2 {
		if x.s.brief {
			x.say("%s:\n", x.to)
		}
		x.say("Remote file does not exist -- broken link!!!\n\n")
		return wgetServer
	}
	if x.s.brief {
		x.say("%s URL: %s %d %s\n", x.stamp(), x.to, code, text)
		return 0
	}
	x.tellLength(a)
	x.chat("Remote file exists.\n\n")
	return 0
}

func (x *fetch) refused(ctx context.Context, a *answer, text string) (status int, again bool, next *target) {
	if x.s.brief {
		x.say("%s:\n", x.to)
	}
	x.say("%s ERROR %d: %s.\n\n", x.stamp(), a.resp.StatusCode, text)
	if x.s.onError {
		x.save(ctx, a)
	}
	return wgetServer, false, nil
}
