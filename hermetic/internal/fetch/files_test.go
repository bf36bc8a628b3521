package fetch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"egressd/hermetic/internal/curl"
	"egressd/hermetic/internal/fetch"
)

func TestOutputs(t *testing.T) {
	r := newRig(t)
	r.file("part", "01234")
	r.file("old", "old")
	r.file("x y.txt", "mine")
	for _, tt := range []struct {
		line   string
		status int
		file   string
		want   string
	}{
		{"curl -s -o out http://a.example/hello", 0, "out", "hello\n"},
		{"curl -s -O http://a.example/hello", 0, "hello", "hello\n"},
		{"curl -s -O http://a.example/d/..%2f..%2fe", 0, "..%2f..%2fe", "GET /d/..%2f..%2fe\nHost: a.example\nAccept: */*\nUser-Agent: curl/7.88.1\n\n"},
		{"curl -s --remote-name-all --output-dir d --create-dirs http://a.example/hello", 0, "d/hello", "hello\n"},
		{"curl -s -o #1.#2 http://a.example/{a,b}/[8-9]", 0, "b.9", echo("/b/9", "")},
		{"curl -s -C - -o part http://a.example/range", 0, "part", "0123456789"},
		{"curl -s -C - -o part http://a.example/range", 0, "part", "0123456789"},
		{"curl -s --no-clobber -o old http://a.example/hello", 0, "old.1", "hello\n"},
		{"curl -s -OJ http://a.example/named", 23, "x y.txt", "mine"},
		{"curl -s -OJ --output-dir d http://a.example/named", 0, "d/x y.txt", "k\n"},
		{"curl -s -o empty http://a.example/status/204", 0, "empty", ""},
		{"curl -s --remove-on-error -o gone http://a.example/short", 18, "gone", "absent"},
		{"curl -s -o kept http://a.example/short", 18, "kept", "err\n"},
		{"curl -s -w @fmt -o w http://a.example/hello", 0, "w", "hello\n"},
		{"curl -s --stderr err http://a.example:99999/ -S", 3, "err", "curl: (3) URL using bad/illegal format or missing URL\n"},
	} {
		got := r.run(tt.line)
		b, err := os.ReadFile(filepath.Join(r.dir, tt.file))
		content := string(b)
		if os.IsNotExist(err) {
			content = "absent"
		}
		if got.status != tt.status || content != tt.want {
			t.Errorf("%s: %+v, %s holds %q, want status %d, %q", tt.line, got, tt.file, content, tt.status, tt.want)
		}
	}
	r.run("curl -s -R -o dated http://a.example/hello")
	if info, err := os.Stat(filepath.Join(r.dir, "dated")); err != nil || info.ModTime().Unix() != 784111777 {
		t.Errorf("-R: %v %v", info, err)
	}
}

func TestSafeName(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "../../a": "a", `..\a`: "a", "..": "", ".": "", "": "", "a/": "", "a\nb\x1b[1m": "ab[1m", strings.Repeat("x", 256): "",
	} {
		if got := fetch.SafeName(in); got != want {
			t.Errorf("safeName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCookies(t *testing.T) {
	r := newRig(t)
	if got := r.run("curl -s -c jar http://www.example.com/cookies"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	jar := r.read("jar")
	if !regexp.MustCompile(`(?s)^# Netscape HTTP Cookie File\n.*\n\n\.example\.com\tTRUE\t/\tFALSE\t\d+\twide\t1\nwww\.example\.com\tFALSE\t/\tFALSE\t0\ta\tb\n$`).MatchString(jar) {
		t.Errorf("the jar holds %q", jar)
	}
	for url, want := range map[string]string{
		"http://www.example.com/x":   "wide=1; a=b",
		"http://other.example.com/x": "wide=1",
		"http://example.org/x":       "",
		"http://notexample.com/x":    "",
	} {
		got := r.run("curl -s -b jar " + url)
		_, cookies, _ := strings.Cut(got.out, "Cookie: ")
		cookies, _, _ = strings.Cut(cookies, "\n")
		if cookies != want && cookies != "a=b; wide=1" || want == "" && cookies != "" {
			t.Errorf("%s was told %q, want %q", url, cookies, want)
		}
	}
}

func TestCookieRules(t *testing.T) {
	at := func(url string) *fetch.Target { u, _ := fetch.ParseURL(url, "http", false); return u }
	now := func() time.Time { return time.Unix(1000, 0) }
	for _, tt := range []struct {
		name, from, set, to, want string
	}{
		{"the path", "http://h/a/b", "k=v", "http://h/a/c", "k=v"},
		{"not above the path", "http://h/a/b", "k=v", "http://h/ab", ""},
		{"Secure over http", "http://h/", "k=v; Secure", "https://h/", ""},
		{"Secure over https", "https://h/", "k=v; Secure", "http://h/", ""},
		{"Max-Age is over", "http://h/", "k=v; Max-Age=0", "http://h/", ""},
		{"Expires is over", "http://h/", "k=v; Expires=Thu, 01-Jan-1970 00:00:10 GMT", "http://h/", ""},
		{"another domain", "http://a.example/", "k=v; Domain=b.example", "http://b.example/", ""},
		{"a public suffix", "http://a.co.uk/", "k=v; Domain=co.uk", "http://b.co.uk/", ""},
		{"an address has no subdomains", "http://1.2.3.4/", "k=v; Domain=3.4", "http://5.6.3.4/", ""},
		{"a control byte", "http://h/", "k=v\x01", "http://h/", ""},
		{"the domain and below", "http://a.b.example/", "k=v; Domain=.b.example", "http://c.b.example/", "k=v"},
	} {
		j := &fetch.Jar{Now: now}
		j.Take(at(tt.from), map[string][]string{"Set-Cookie": {tt.set}})
		if got := j.Header(at(tt.to), ""); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestForm(t *testing.T) {
	r := newRig(t)
	r.file("f.txt", "file text\n")
	got := r.runWith(t.Context(), "", "curl", "-s", "-F", "a=b;type=x/y", "-F", "t=<f.txt", "-F", "f=@f.txt;filename=g\".png", "--form-string", "s=@x;type=y", "http://a.example/")
	m := regexp.MustCompile(`boundary=(\S+)`).FindStringSubmatch(got.out)
	if m == nil {
		t.Fatalf("%+v", got)
	}
	_, body, _ := strings.Cut(got.out, "\n\n")
	body = strings.ReplaceAll(body, m[1], "B")
	want := strings.ReplaceAll(`--B
Content-Disposition: form-data; name="a"
Content-Type: x/y

b
--B
Content-Disposition: form-data; name="t"

file text
{LF}
--B
Content-Disposition: form-data; name="f"; filename="g%22.png"
Content-Type: image/png

file text
{LF}
--B
Content-Disposition: form-data; name="s"

@x;type=y
--B--
`, "\n", "\r\n")
	want = strings.ReplaceAll(want, "file text\r\n{LF}\r\n", "file text\n\r\n")
	if body != want {
		t.Errorf("the form is\n%q\nwant\n%q", body, want)
	}
}

// A body from the standard input goes out in chunks, and only once.
func TestUploadStdin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		got := b.runOn(strings.NewReader("from stdin"), "curl", "-s", "-T", "-", "http://a.example/")
		if got.status != 0 || got.out != "ok" || b.bodies[0] != "from stdin" {
			t.Errorf("%+v, the origin got %q", got, b.bodies)
		}
	})
}

// An answer that comes before the whole body does not hang.
func TestEarlyAnswer(t *testing.T) {
	r := newRig(t)
	if got := r.runWith(t.Context(), strings.Repeat("x", 4<<20), "curl", "-s", "-T", "-", "http://a.example/status/403"); got.status != 0 || got.out != "body of it\n" {
		t.Errorf("%+v", got)
	}
}

func TestHeadLimits(t *testing.T) {
	for name, answer := range map[string]string{
		"a head without end": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 100_000),
		"one endless line":   "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 1<<20),
		"1xx without end":    strings.Repeat("HTTP/1.1 100 Continue\r\nX: "+strings.Repeat("y", 1000)+"\r\n\r\n", 1000),
	} {
		synctest.Test(t, func(t *testing.T) {
			got := newBubble(t, answer).run("curl", "http://a.example/")
			if got.status != 56 || !strings.Contains(got.err, "(56) Too large response headers") {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

func TestOddAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, answer string
		status       int
		out          string
	}{
		{"nothing", "", 52, ""},
		{"not HTTP", "hello\n", 1, ""},
		{"half a head", "HTTP/1.1 200 OK\r\n", 52, ""},
		{"until the end", "HTTP/1.1 200 OK\r\n\r\nbody", 0, "body"},
		{"HTTP/1.0", "HTTP/1.0 200 OK\n\nbody", 0, "body"},
		{"1xx first", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb", 0, "b"},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 0, "abc"},
		{"broken chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", 18, "ab"},
		{"a field without a colon", "HTTP/1.1 200 OK\r\nwhat\r\nContent-Length: 1\r\n\r\nb", 0, "b"},
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := newBubble(t, tt.answer).run("curl", "-s", "http://a.example/"); got.status != tt.status || got.out != tt.out {
				t.Errorf("%s: %+v, want %d %q", tt.name, got, tt.status, tt.out)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("http://u:p@[::1]:80/a/../b?q#f", "../x?y")
	f.Add("a{b,c}[1-3]", "//h")
	f.Fuzz(func(t *testing.T, s, location string) {
		urls, fail := curl.Expand(s)
		if fail == nil && len(urls) > curl.GlobMax {
			t.Fatalf("%q means %d URLs", s, len(urls))
		}
		u, fail := fetch.ParseURL(s, "http", false)
		if fail != nil || u.Host == "" {
			return
		}
		if v, fail := fetch.ParseURL(u.String(), "http", false); fail != nil || v.String() != u.String() {
			t.Fatalf("%q reads as %q, and that as %v", s, u, v)
		}
		n, fail := u.Follow(location, false)
		if fail == nil && n.Host != "" {
			for _, c := range n.String() {
				if c <= ' ' || c >= 0x7f {
					t.Fatalf("%q from %q leads to %q", location, s, n)
				}
			}
		}
	})
}
