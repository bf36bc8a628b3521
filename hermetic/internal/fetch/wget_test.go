package fetch_test

import (
	"regexp"
	"strings"
	"testing"
)

// fixed takes out what differs from run to run.
func fixed(s string) string {
	s = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`).ReplaceAllString(s, "TIME")
	return regexp.MustCompile(`\([0-9.e+]+ [KMG]?B/s\)`).ReplaceAllString(s, "(SPEED)")
}

// What GNU Wget 1.21.3 prints, but for the progress of dots.
func TestWget(t *testing.T) {
	r := newRig(t)
	r.file("list", "http://a.example/hello\n# no\nhttp://a.example/status/404\n")
	r.file("post", "p=1")
	const ask = "Connecting to a.example:80... connected.\nHTTP request sent, awaiting response... "
	const hello = "--TIME--  http://a.example/hello\n" + ask + "200 OK\nLength: 6 [text/plain]\n"
	for _, tt := range []struct {
		line     string
		status   int
		out, err string
		file     string
		content  string
	}{
		{"wget", 1, "", "wget: missing URL\nUsage: wget [OPTION]... [URL]...\n\nTry `wget --help' for more options.\n", "", ""},
		{"wget --foo", 2, "", "wget: unrecognized option '--foo'\nUsage: wget [OPTION]... [URL]...\n\nTry `wget --help' for more options.\n", "", ""},
		{"wget -T x http://a.example/", 2, "", "wget: --timeout: Invalid time period ‘x’\n", "", ""},
		{"wget ftp://x", 1, "", "ftp://x: Unsupported scheme ‘ftp’.\n", "", ""},
		{"wget http://a.example/hello", 0, "", hello + "Saving to: ‘hello’\n\n\nTIME (SPEED) - ‘hello’ saved [6/6]\n\n", "hello", "hello\n"},
		{"wget http://a.example/hello", 0, "", hello + "Saving to: ‘hello.1’\n\n\nTIME (SPEED) - ‘hello.1’ saved [6/6]\n\n", "hello.1", "hello\n"},
		{"wget -q http://a.example/hello -P d/e", 0, "", "", "d/e/hello", "hello\n"},
		{"wget -q -O - http://a.example/x", 0, "GET /x\nHost: a.example\nAccept: */*\nAccept-Encoding: identity\nUser-Agent: Wget/1.21.3\n\n", "", "", ""},
		{"wget -nv -O o http://a.example/hello", 0, "", "TIME URL:http://a.example/hello [6/6] -> \"o\" [1]\n", "o", "hello\n"},
		{"wget -q -O - --method=PUT --body-data=xx --header X-A:b -U me http://a.example/", 0, "PUT /\nHost: a.example\nAccept: */*\nAccept-Encoding: identity\nContent-Length: 2\nContent-Type: application/x-www-form-urlencoded\nUser-Agent: me\nX-A: b\n\nxx", "", "", ""},
		{"wget -q -O - --post-file post http://a.example/", 0, "POST /\nHost: a.example\nAccept: */*\nAccept-Encoding: identity\nContent-Length: 3\nContent-Type: application/x-www-form-urlencoded\nUser-Agent: Wget/1.21.3\n\np=1", "", "", ""},
		{"wget -q -O - --post-file nofile http://a.example/", 3, "", "BODY data file ‘nofile’ missing: No such file or directory\n", "", ""},
		{"wget http://a.example/status/404", 8, "", "--TIME--  http://a.example/status/404\n" + ask + "404 Not Found\nTIME ERROR 404: Not Found.\n\n", "404", "absent"},
		{"wget --spider http://a.example/hello", 0, "", "Spider mode enabled. Check if remote file exists.\n" + hello + "Remote file exists.\n\n", "", ""},
		{"wget --spider -q http://a.example/status/404", 8, "", "", "", ""},
		{"wget -nc http://a.example/hello", 0, "", "File ‘hello’ already there; not retrieving.\n\n", "", ""},
		{"wget -q --content-disposition http://a.example/named", 0, "", "", "x y.txt", "k\n"},
		{"wget -q -i list", 8, "", "", "hello.2", "hello\n"},
		{"wget -t 1 -q http://gone.example/", 4, "", "", "", ""},
		{"wget -q http://denied.example/", 4, "", "wget: Network access denied: URL not in allow-list: http://denied.example/ (no rule allows this host); to allow it, whoever started this run can add: --allow denied.example\n", "", ""},
		{"wget -q https://example.org/", 5, "", "", "", ""},
		{"wget -q --max-redirect=1 http://a.example/to/302?u=/to/302?u=/x", 8, "", "", "", ""},
		{"wget -q -O - http://a.example/to/302?u=/hello", 0, "hello\n", "", "", ""},
		{"wget -q -O x/y/z http://a.example/", 1, "", "x/y/z: No such file or directory\n", "", ""},
		{"wget -r http://a.example/", 2, "", "wget: option '--recursive' is not supported here\n", "", ""},
		{"wget -q -t 1 http://a.example/short", 4, "", "", "short", "err\n"},
	} {
		got := r.run(tt.line)
		if got.status != tt.status || got.out != tt.out || fixed(got.err) != tt.err {
			t.Errorf("%s: status %d, want %d\nout  %q\nwant %q\nerr  %q\nwant %q", tt.line, got.status, tt.status, got.out, tt.out, fixed(got.err), tt.err)
		}
		if tt.file == "" || tt.content == "absent" {
			continue
		}
		if c := r.read(tt.file); c != tt.content {
			t.Errorf("%s: %s holds %q", tt.line, tt.file, c)
		}
	}
}

func TestWgetContinue(t *testing.T) {
	r := newRig(t)
	r.file("range", "012")
	if got := r.run("wget -q -c http://a.example/range"); got.status != 0 || r.read("range") != "0123456789" {
		t.Errorf("%+v: %q", got, r.read("range"))
	}
	if got := r.run("wget -q -c http://a.example/range"); got.status != 0 || r.read("range") != "0123456789" {
		t.Errorf("when it is whole: %+v: %q", got, r.read("range"))
	}
}

func TestWgetLogin(t *testing.T) {
	r := newRig(t)
	got := r.run("wget -q -O - --auth-no-challenge --user=u --password=p http://a.example/to/302?u=http://b.example/x")
	if got.status != 0 || strings.Contains(got.out, "Authorization") {
		t.Errorf("a login that follows to another host: %+v", got)
	}
	got = r.run("wget -q -O - --auth-no-challenge --user=u --password=p http://a.example/x")
	if !strings.Contains(got.out, "Authorization: Basic dTpw") {
		t.Errorf("%+v", got)
	}
}
