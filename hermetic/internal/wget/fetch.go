package wget

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/fetch"
)

// download is one URL of a wget.
type download struct {
	*getter
	asked  string
	first  *fetch.Target
	to     *fetch.Target
	try    int
	login  bool
	body   *fetch.Payload
	method string

	name   string // the file; "" with -O
	had    int64  // bytes that are there already, with -c
	since  time.Time
	chosen bool
}

func (g *getter) one(ctx context.Context, asked string) int {
	t, f := fetch.ParseURL(asked, "http", false)
	switch {
	case f != nil:
		g.say("%s: Invalid host name.\n", asked)
		return wgetGeneric
	case t.Scheme != "http" && t.Scheme != "https":
		fmt.Fprintf(g.log, "%s: Unsupported scheme ‘%s’.\n", asked, t.Scheme)
		return wgetGeneric
	case g.s.httpsOnly && t.Scheme != "https":
		return 0
	}
	x := &download{getter: g, asked: asked, first: t, to: t, login: g.s.authNow}
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
		if !fetch.Pause(ctx, min(time.Duration(x.try)*time.Second, g.s.retryWait)) {
			return status
		}
		x.to, x.method = x.first, ""
		if status := x.prepare(); status != 0 {
			return status
		}
	}
}

// prepare chooses method and body.
func (x *download) prepare() int {
	x.method, x.body = x.s.method, nil
	if x.s.spider && x.method == "" {
		x.method = http.MethodHead
	}
	if x.method == "" {
		x.method = http.MethodGet
	}
	if !fetch.IsToken(x.method) {
		x.c.Errorf("Invalid method ‘%s’.", x.method)
		return wgetGeneric
	}
	if !x.s.post {
		return 0
	}
	const kind = "application/x-www-form-urlencoded"
	if x.s.bodyFile == "" {
		x.body = fetch.BytesPayload([]byte(x.s.body), kind)
		return 0
	}
	full := x.c.Path(x.s.bodyFile)
	info, err := x.c.FS.Stat(full)
	if err != nil {
		fmt.Fprintf(x.log, "BODY data file ‘%s’ missing: %s\n", x.s.bodyFile, command.Reason(err))
		return WgetFile
	}
	x.body = &fetch.Payload{Size: info.Size(), Kind: kind, Open: func() (io.ReadCloser, error) { return x.c.FS.Open(full) }}
	return 0
}

// local is the name that a URL gives its file.
func (x *download) local(t *fetch.Target) string {
	name := fetch.Unescape(path.Base(t.Path))
	if strings.HasSuffix(t.Path, "/") {
		name = "index.html"
	}
	if t.Query != "" {
		name += strings.ReplaceAll(t.Query, "/", "%2F")
	}
	if name = fetch.SafeName(strings.ReplaceAll(name, "/", "%2F")); name == "" {
		name = "index.html"
	}
	return x.placed(name)
}

func (x *download) placed(name string) string {
	if x.s.prefix == "" || x.s.prefix == "." {
		return name
	}
	return strings.TrimSuffix(x.s.prefix, "/") + "/" + name
}

// attempt makes one try with its redirects; again says that another may help.
func (x *download) attempt(ctx context.Context) (status int, again bool) {
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
		a.Close()
		cancel()
		if next == nil {
			return status, retry
		}
		x.to = next
	}
}

func (x *download) ask(parent context.Context) (*fetch.Answer, context.CancelFunc, *fetch.Failure) {
	ctx, cancel := parent, context.CancelFunc(func() {})
	if x.s.timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(parent, x.s.timeout, fetch.ErrTotal)
	}
	x.resume()
	x.chat("Connecting to %s... ", x.to.Host+":"+strconv.FormatInt(int64(x.to.Port), 10))
	c := &fetch.Call{
		To: x.to, Method: x.method, Fields: x.fields(), Body: x.body, Trust: x.trust, Dial: x.c.Proxy,
		Note: func(byte, string) {}, Clock: fetch.Clocks{Now: x.c.Now, Start: x.c.Now()},
	}
	a, f := c.Do(ctx)
	if f == nil {
		x.chat("connected.\nHTTP request sent, awaiting response... ")
	}
	return a, cancel, f
}

// resume looks at the file that is there, for -c and -N.
func (x *download) resume() {
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

func (x *download) fields() []fetch.Field {
	all := []fetch.Field{{Name: "Host", Value: x.to.AuthorityText()}}
	set := func(name, value string) {
		for i := range all {
			if strings.EqualFold(all[i].Name, name) {
				all[i].Value = value
				return
			}
		}
		all = append(all, fetch.Field{Name: name, Value: value})
	}
	if x.had > 0 {
		set("Range", "bytes="+strconv.FormatInt(x.had, 10)+"-")
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
	all = append(all, fetch.Field{Name: "User-Agent", Value: x.s.agent}, fetch.Field{Name: "Accept", Value: "*/*"}, fetch.Field{Name: "Accept-Encoding", Value: "identity"})
	user, pass := x.s.user, x.s.password
	if x.first.HasUser {
		user, pass = x.first.User, x.first.Pass
	}
	if x.login && user != "" && x.to.SameOrigin(x.first) {
		set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+pass)))
	}
	if cookies := x.jar.Header(x.to, ""); cookies != "" && !x.s.noCookies {
		set("Cookie", cookies)
	}
	if x.body != nil {
		set("Content-Type", x.body.Kind)
		set("Content-Length", strconv.FormatInt(x.body.Size, 10))
	} else if x.method == http.MethodPost {
		set("Content-Length", "0")
	}
	for _, h := range x.s.headers {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		key := strings.ToLower(name)
		if !ok || !fetch.IsToken(name) || strings.ContainsAny(value, "\r\n\x00") || key == "content-length" || key == "transfer-encoding" || key == "connection" {
			continue
		}
		if (key == "authorization" || key == "cookie" || key == "host") && !x.to.SameOrigin(x.first) {
			continue // as with curl: a secret for one origin stays with it
		}
		set(name, value)
	}
	return all
}

// failed tells a failure in wget's words; again says that another try may help.
func (x *download) failed(f *fetch.Failure) (status int, again bool) {
	switch {
	case f.Denied:
		x.chat("failed.\n")
		fmt.Fprintf(x.log, "wget: %s\n", f.Text) // with -q too: nobody would know why
		return wgetNetwork, false
	case f.Code == fetch.ExitResolve:
		x.chat("failed: Name or service not known.\n")
		x.say("wget: unable to resolve host address ‘%s’\n", x.to.Host)
		return wgetNetwork, false
	case f.Code == fetch.ExitConnect:
		x.chat("failed: Connection refused.\n")
		return wgetNetwork, false
	case f.Code == fetch.ExitVerify || f.Code == fetch.ExitTLS:
		x.chat("failed.\n")
		x.say("ERROR: cannot verify %s's certificate: %s\n", x.to.Host, f.Text)
		return wgetTLS, false
	case f.Code == fetch.ExitTimeout:
		x.chat("failed: Connection timed out.\n")
		return wgetNetwork, true
	case f.Code == fetch.ExitEmpty:
		x.chat("connected.\nHTTP request sent, awaiting response... No data received.\n")
		return wgetNetwork, true
	case f.Code == fetch.ExitProtocol || f.Code == fetch.ExitWeird:
		x.chat("connected.\nHTTP request sent, awaiting response... \n%s\n", f.Text)
		return wgetProtocol, false
	}
	x.chat("failed: %s\n", f.Text)
	return wgetNetwork, true
}

// answered handles an answer; next is where it redirects to.
func (x *download) answered(ctx context.Context, a *fetch.Answer, redirects int) (status int, again bool, next *fetch.Target) {
	code := a.Resp.StatusCode
	text := strings.TrimSpace(strings.TrimPrefix(a.Resp.Status, strconv.FormatInt(int64(code), 10)))
	if x.s.showHead {
		x.chat("\n")
		for line := range strings.SplitSeq(strings.TrimRight(strings.ReplaceAll(string(a.Last), "\r", ""), "\n"), "\n") {
			fmt.Fprintf(x.log, "  %s\n", line) // with -q, too
		}
	} else {
		x.chat("%d %s\n", code, text)
	}
	if !x.s.noCookies {
		x.jar.Take(x.to, a.Resp.Header)
	}
	location := a.Resp.Header.Get("Location")
	switch {
	case code/100 == 3 && code != 304 && location != "":
		return x.redirected(a, location, redirects)
	case code == http.StatusUnauthorized && !x.login && (x.s.user != "" || x.first.HasUser) && strings.HasPrefix(strings.ToLower(a.Resp.Header.Get("WWW-Authenticate")), "basic"):
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
	status, again = x.Save(ctx, a)
	return status, again, nil
}

func (x *download) redirected(a *fetch.Answer, location string, redirects int) (status int, again bool, next *fetch.Target) {
	x.chat("Location: %s [following]\n", location)
	if redirects >= x.s.redirects {
		x.say("%d redirections exceeded.\n", x.s.redirects)
		return wgetServer, false, nil
	}
	to, f := x.to.Follow(location, false)
	if f != nil || to.Scheme != "http" && to.Scheme != "https" {
		x.say("%s: Unsupported scheme.\n", location)
		return wgetGeneric, false, nil
	}
	if code := a.Resp.StatusCode; code != 307 && code != 308 && x.method != http.MethodHead && (x.method == http.MethodPost || code == 303) {
		x.method, x.body = http.MethodGet, nil
	}
	if x.s.trustNames && x.s.output == "" && !x.s.spider {
		x.name = x.local(to)
	}
	return 0, false, to
}

func (x *download) looked(a *fetch.Answer, text string) int {
	code := a.Resp.StatusCode
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

func (x *download) refused(ctx context.Context, a *fetch.Answer, text string) (status int, again bool, next *fetch.Target) {
	if x.s.brief {
		x.say("%s:\n", x.to)
	}
	x.say("%s ERROR %d: %s.\n\n", x.stamp(), a.Resp.StatusCode, text)
	if x.s.onError {
		x.Save(ctx, a)
	}
	return wgetServer, false, nil
}
