package fetch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCurl(t *testing.T) {
	r := newRig(t)
	r.file("body", "file\nbody\n")
	r.file("up.txt", "upload")
	r.file("conf", "# a comment\nurl = \"http://a.example/x\"\nheader: \"X-A: b\"\n-s\n")
	for _, tt := range []struct {
		line   string
		status int
		out    string
	}{
		{"curl http://a.example/hello", 0, "hello\n"},
		{"curl -s https://example.com/hello", 0, "hello\n"},
		{"curl -s a.example/hello", 0, "hello\n"},
		{"curl -s http://a.example/x", 0, "GET /x\nHost: a.example\nAccept: */*\nUser-Agent: curl/7.88.1\n\n"},
		{"curl -s -d a=1 -d b=2 http://a.example/x", 0, "POST /x\nHost: a.example\nAccept: */*\nContent-Length: 7\nContent-Type: application/x-www-form-urlencoded\nUser-Agent: curl/7.88.1\n\na=1&b=2"},
		{"curl -s -d @body http://a.example/x -H Content-Type:a/b", 0, "POST /x\nHost: a.example\nAccept: */*\nContent-Length: 8\nContent-Type: a/b\nUser-Agent: curl/7.88.1\n\nfilebody"},
		{"curl -s --data-binary @body -X PUT http://a.example/x", 0, "PUT /x\nHost: a.example\nAccept: */*\nContent-Length: 10\nContent-Type: application/x-www-form-urlencoded\nUser-Agent: curl/7.88.1\n\nfile\nbody\n"},
		{"curl -s --json {} http://a.example/x", 0, "POST /x\nHost: a.example\nAccept: application/json\nContent-Length: 2\nContent-Type: application/json\nUser-Agent: curl/7.88.1\n\n{}"},
		{"curl -sG -d a=1 --data-urlencode q=ä&b http://a.example/x?z", 0, "GET /x?z&a=1&q=%C3%A4%26b\nHost: a.example\nAccept: */*\nUser-Agent: curl/7.88.1\n\n"},
		{"curl -s -T up.txt http://a.example/d/", 0, "PUT /d/up.txt\nHost: a.example\nAccept: */*\nContent-Length: 6\nUser-Agent: curl/7.88.1\n\nupload"},
		{"curl -s -u me:pw -A x -e http://r/ -b k=v -H X-E; -H Accept: http://a.example/x", 0, "GET /x\nHost: a.example\nAuthorization: Basic bWU6cHc=\nCookie: k=v\nReferer: http://r/\nUser-Agent: x\nX-E: \n\n"},
		{"curl -s http://u:p@a.example/x", 0, "GET /x\nHost: a.example\nAccept: */*\nAuthorization: Basic dTpw\nUser-Agent: curl/7.88.1\n\n"},
		{"curl -s --oauth2-bearer T -A a http://a.example/x", 0, "GET /x\nHost: a.example\nAccept: */*\nAuthorization: Bearer T\nUser-Agent: a\n\n"},
		{"curl -s http://a.example/a/../b/./c#frag", 0, "GET /b/c\nHost: a.example\nAccept: */*\nUser-Agent: curl/7.88.1\n\n"},
		{"curl -s http://a.example:8080/{x,y}[1-2]", 0, echo("/x1", ":8080") + echo("/x2", ":8080") + echo("/y1", ":8080") + echo("/y2", ":8080")},
		{"curl -s -o /dev/null -w %{http_code}\\n%{size_download}|%{url_effective}|%{content_type}|%{num_redirects} http://a.example/hello", 0, "200\n6|http://a.example/hello|text/plain; charset=utf-8|0"},
		{"curl -sL http://a.example/to/302?u=/hello", 0, "hello\n"},
		{"curl -sL -d x http://a.example/to/302?u=/x", 0, echo("/x", "")},
		{"curl -sL -d x http://a.example/to/307?u=/x", 0, "POST /x\nHost: a.example\nAccept: */*\nContent-Length: 1\nContent-Type: application/x-www-form-urlencoded\nUser-Agent: curl/7.88.1\n\nx"},
		{"curl -s http://a.example/to/302?u=/hello", 0, "moved\n"},
		{"curl -s -w %{redirect_url} http://a.example/to/302?u=hello", 0, "moved\nhttp://a.example/to/hello"},
		{"curl -s --compressed http://a.example/gzip", 0, "hello\n"},
		{"curl -s -r 2-4 http://a.example/range", 0, "234"},
		{"curl -s -K conf", 0, "GET /x\nHost: a.example\nAccept: */*\nUser-Agent: curl/7.88.1\nX-A: b\n\n"},
		{"curl -s http://a.example/hello --next -s -I http://b.example/status/204 -o /dev/null", 0, "hello\n"},
		{"curl -s -k --cacert none https://example.com/", 77, ""},
		{"curl -sf http://a.example/status/404", 22, ""},
		{"curl -s --fail-with-body http://a.example/status/500", 22, "body of it\n"},
		{"curl -s --max-filesize 3 http://a.example/hello", 63, ""},
		{"curl -s http://a.example/short", 18, "err\n"},
		{"curl -sL --max-redirs 3 http://a.example/to/302?u=/to/302?u=/x", 0, "GET /x\nHost: a.example\nAccept: */*\nUser-Agent: curl/7.88.1\n\n"},
		{"curl -sL --proto-redir =https http://a.example/to/302?u=/x", 1, ""},
		{"curl -sL http://a.example/to/302?u=file:///etc/passwd", 1, ""},
		{"curl -s file:///etc/passwd", 1, ""},
		{"curl -s ftp://a.example/", 1, ""},
		{"curl -s --proto =https http://a.example/", 1, ""},
		{"curl -s http://", 3, ""},
		{"curl -s http://a.example:99999/", 3, ""},
		{"curl -s http://a.example/a{b", 3, ""},
		{"curl -s http://a.example/[3-1]", 3, ""},
		{"curl -s -o no/such/dir http://a.example/hello", 23, ""},
		{"curl -s -T nofile http://a.example/", 26, ""},
		{"curl -s -F a=@nofile http://a.example/", 26, ""},
	} {
		got := r.run(tt.line)
		if got.status != tt.status || got.out != tt.out {
			t.Errorf("%s: status %d, want %d; stderr %q\n got %q\nwant %q", tt.line, got.status, tt.status, got.err, got.out, tt.out)
		}
	}
}

func echo(path, port string) string {
	return "GET " + path + "\nHost: a.example" + port + "\nAccept: */*\nUser-Agent: curl/7.88.1\n\n"
}

// What curl 7.88.1 itself prints.
func TestCurlErrors(t *testing.T) {
	r := newRig(t)
	const try = "curl: try 'curl --help' or 'curl --manual' for more information\n"
	for _, tt := range []struct {
		line   string
		status int
		err    string
	}{
		{"curl", 2, try},
		{"curl -s", 2, "curl: no URL specified!\n" + try},
		{"curl --foo http://x", 2, "curl: option --foo: is unknown\n" + try},
		{"curl -o", 2, "curl: option -o: requires parameter\n" + try},
		{"curl -sfo", 2, "curl: option -sfo: requires parameter\n" + try},
		{"curl --da x http://x", 2, "curl: option --da: is ambiguous\n" + try},
		{"curl --max-time x http://x", 2, "curl: option --max-time: expected a proper numerical parameter\n" + try},
		{"curl --retry -1 http://x", 2, "curl: option --retry: expected a positive numerical parameter\n" + try},
		{"curl -F x http://x", 2, "Warning: Illegally formatted input field!\ncurl: option -F: is badly used here\n" + try},
		{"curl -I -d x http://x", 2, "Warning: You can only select one HTTP request method! You asked for both POST \nWarning: (-d, --data) and HEAD (-I, --head).\n"},
		{"curl -K nofile", 26, "curl: cannot read config from 'nofile'\ncurl: option -K: error encountered when reading a file\n" + try},
		{"curl foo://x", 1, "curl: (1) Protocol \"foo\" not supported or disabled in libcurl\n"},
		{"curl http://", 3, "curl: (3) URL using bad/illegal format or missing URL\n"},
		{"curl http://a{b", 3, "curl: (3) unmatched brace in URL position 9:\nhttp://a{b\n        ^\n"},
		{"curl http://a[1-", 3, "curl: (3) bad range in URL position 12:\nhttp://a[1-\n           ^\n"},
		{"curl http://a[5-1]/", 3, "curl: (3) bad range in URL position 14:\nhttp://a[5-1]/\n             ^\n"},
		{"curl -f http://a.example/status/404", 22, "curl: (22) The requested URL returned error: 404\n"},
		{"curl -sf http://a.example/status/404", 22, ""},
		{"curl -sSf http://a.example/status/404", 22, "curl: (22) The requested URL returned error: 404\n"},
		{"curl -L --max-redirs 0 http://a.example/to/301?u=/", 47, "curl: (47) Maximum (0) redirects followed\n"},
		{"curl http://a.example/short", 18, "curl: (18) transfer closed with 6 bytes remaining to read\n"},
		{"curl -C 5 -o f http://a.example/hello", 33, "curl: (33) HTTP server doesn't seem to support byte ranges. Cannot resume.\n"},
		{"curl -O http://a.example/", 23, "curl: Remote file name has no length!\ncurl: (23) Failed writing received data to disk/application\n"},
		{"curl -T nofile http://a.example/", 26, "curl: Can't open 'nofile'!\n" + try + "curl: (26) Failed to open/read local data from file/application\n"},
		{"curl -x http://p http://a.example/", 2, "curl: option -x: not supported here: the session's gate decides where connections lead\n" + try},
		{"curl --resolve a:80:1.2.3.4 http://a.example/", 2, "curl: option --resolve: not supported here: the session's gate decides where connections lead\n" + try},
		{"curl -d @nofile http://a.example/ -o x", 0, "Warning: Couldn't read data from file \"nofile\", this makes an empty POST.\n"},
		{"curl https://example.com:80/", 35, "curl: (35) OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number\n"},
		{"curl https://example.org/", 60, "curl: (60) SSL: no alternative certificate subject name matches target host name 'example.org'\n"},
		{"curl -k https://example.org/", 60, "curl: (60) SSL: no alternative certificate subject name matches target host name 'example.org' (certificates are verified always here; nothing turns that off)\n"},
		{"curl https://plain403.example/", 56, "curl: (56) CONNECT tunnel failed, response 403\n"},
	} {
		got := r.run(tt.line)
		if got.status != tt.status || got.err != tt.err {
			t.Errorf("%s: status %d, want %d\n got %q\nwant %q", tt.line, got.status, tt.status, got.err, tt.err)
		}
	}
}

// What the gate refuses or cannot reach, by CONNECT and in absolute-form alike.
func TestCurlGate(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		host   string
		status int
		err    string
	}{
		{"denied.example", 7, "curl: (7) Network access denied: URL not in allow-list: URL (no rule allows this host); to allow it, whoever started this run can add: --allow denied.example\n"},
		{"get.example", 3, "curl: (3) HTTP method 'GET' not allowed: URL: this path is allowed, but not with this method\n"},
		{"private.example", 7, "curl: (7) Network access denied: URL (the address is private)\n"},
		{"gone.example", 6, "curl: (6) Could not resolve host: gone.example\n"},
		{"refused.example", 7, "curl: (7) Failed to connect to refused.example port PORT: Couldn't connect to server\n"},
		{"slow.example", 28, "curl: (28) Failed to connect to slow.example port PORT: Couldn't connect to server\n"},
		{"badtls.example", 60, "curl: (60) SSL certificate problem: the TLS certificate of the origin does not verify\n"},
		{"busy.example", 56, "curl: (56) the session's gate answered 503: a limit of the gate is reached\n"},
	} {
		for scheme, port := range map[string]string{"http": "80", "https": "443"} {
			url := scheme + "://" + tt.host + "/"
			want := strings.NewReplacer("URL (", url+" (", "URL:", url+":", "PORT", port).Replace(tt.err)
			retry := ""
			if tt.status == 3 || strings.Contains(tt.err, "denied") {
				retry = "--retry 2 --retry-all-errors --retry-delay 1000000 " // of no use, and not tried
			}
			got := r.run("curl -sS " + retry + url)
			if got.status != tt.status || got.err != want || got.out != "" {
				t.Errorf("%s: %+v\nwant %d %q", url, got, tt.status, want)
			}
		}
	}
	// A redirect is judged as a request of its own.
	got := r.run("curl -sSL http://a.example/to/302?u=http://denied.example/")
	if got.status != 7 || !strings.Contains(got.err, "URL not in allow-list: http://denied.example/") || got.out != "" {
		t.Errorf("redirect to a denied host: %+v", got)
	}
}

// An origin that speaks as the gate does is an origin.
func TestForgedRefusal(t *testing.T) {
	r := newRig(t)
	got := r.run("curl -sS https://example.com/forged")
	if got.status != 0 || !strings.HasPrefix(got.out, "egressd: no.") {
		t.Errorf("inside TLS that the gate does not see into: %+v", got)
	}
	got = r.run("curl -sS http://a.example/forged")
	if got.status != 7 || strings.Contains(got.err, "--allow") {
		t.Errorf("without TLS, a rule that is not about the host: %+v", got)
	}
}

// Secrets stay with the origin that they were given for.
func TestRedirectKeepsSecrets(t *testing.T) {
	r := newRig(t)
	const secrets = "curl -sL -u me:pw -b k=v -H X-Own:1 -H Cookie:own=1 "
	for _, tt := range []struct {
		to   string
		told bool
	}{
		{"/x", true},
		{"http://a.example/x", true},
		{"http://b.example/x", false},
		{"http://a.example:81/x", false},
		{"https://example.com/x", false},
	} {
		got := r.run(secrets + "http://a.example/to/302?u=" + tt.to)
		told := strings.Contains(got.out, "Authorization") && strings.Contains(got.out, "own=1")
		none := !strings.Contains(got.out, "Authorization") && !strings.Contains(got.out, "Cookie")
		if got.status != 0 || !strings.Contains(got.out, "X-Own: 1") || tt.told && !told || !tt.told && !none {
			t.Errorf("%s: %+v", tt.to, got)
		}
	}
	if got := r.run("curl -sL -b k=v http://a.example/to/302?u=http://b.example/x"); strings.Contains(got.out, "Cookie") {
		t.Errorf("-b: %+v", got)
	}
	// Back at the first origin they are told again, as with curl.
	got := r.run("curl -sL -H Authorization:t http://a.example/to/302?u=http://b.example/to/302?u=http://a.example/x")
	if !strings.Contains(got.out, "Authorization: t") {
		t.Errorf("back at the origin: %+v", got)
	}
}

func TestEveryRequestIsAsked(t *testing.T) {
	r := newRig(t)
	r.run("curl -sL http://a.example/to/302?u=https://example.com/hello http://a.example/hello")
	want := []string{"GET http://a.example/to/302?u=https://example.com/hello", "CONNECT example.com:443", "GET http://a.example/hello"}
	if got := r.wasAsked(); !slices.Equal(got, want) {
		t.Errorf("the gate was asked %q", got)
	}
}

func TestCurlHeads(t *testing.T) {
	r := newRig(t)
	got := r.run("curl -si -D heads http://a.example/hello")
	head, body, _ := strings.Cut(got.out, "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || body != "hello\n" || r.read("heads") != head+"\r\n\r\n" {
		t.Errorf("-i: %+v, -D: %q", got, r.read("heads"))
	}
	got = r.run("curl -sI http://a.example/hello")
	if !strings.HasSuffix(got.out, "\r\n\r\n") || !strings.HasPrefix(got.out, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("-I: %+v", got)
	}
	got = r.run("curl -sv http://a.example/hello")
	for _, line := range []string{"> GET /hello HTTP/1.1\r\n", "> User-Agent: curl/7.88.1\r\n", "< HTTP/1.1 200 OK\r\n", "> \r\n", "< \r\n", "{ [6 bytes data]\n"} {
		if !strings.Contains(got.err, line) {
			t.Errorf("-v has no %q: %q", line, got.err)
		}
	}
}

func TestCurlTimes(t *testing.T) {
	r := newRig(t)
	got := r.run("curl -sS -m 0.05 http://a.example/silent")
	if got.status != 28 || !strings.Contains(got.err, "(28) Operation timed out after") {
		t.Errorf("-m: %+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := r.runWith(ctx, "", "curl", "-s", "http://a.example/silent"); got.status == 0 {
		t.Errorf("an end from outside: %+v", got)
	}
	got = r.run("curl -s http://a.example/endless")
	if got.status != 63 || len(got.out) > 1<<20 {
		t.Errorf("endless: status %d, %d bytes", got.status, len(got.out))
	}
}

// Waiting between attempts, in a bubble: nothing is waited for.
func TestCurlRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, "HTTP/1.1 503 X\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno", "HTTP/1.1 500 X\r\nContent-Length: 2\r\n\r\nno", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
		began := time.Now()
		got := b.run("curl", "--retry", "3", "-f", "http://a.example/")
		if got.status != 0 || got.out != "yes" {
			t.Errorf("%+v", got)
		}
		if spent := time.Since(began); spent != 8*time.Second {
			t.Errorf("waited %v, want 7 s as told and 1 s", spent)
		}
		const want = "curl: (22) The requested URL returned error: 503\nWarning: Problem: HTTP error. Will retry in 7 seconds. 3 retries left.\n"
		if !strings.HasPrefix(got.err, want) {
			t.Errorf("stderr %q", got.err)
		}
	})
}

// A gate that takes a connection and says nothing.
func TestCurlConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for line, want := range map[string]string{
			"curl -sS --connect-timeout 3 https://a.example/": "curl: (28) Connection timed out after 3000 milliseconds\n",
			"curl -sS -m 2 https://a.example/":                "curl: (28) Operation timed out after 2000 milliseconds with 0 bytes received\n",
			"wget -q -t 1 -T 1 https://a.example/":            "",
		} {
			b := newBubble(t)
			b.silent = true
			if got := b.run(strings.Fields(line)...); got.err != want || got.status == 0 {
				t.Errorf("%s: %+v, want %q", line, got, want)
			}
		}
	})
}
