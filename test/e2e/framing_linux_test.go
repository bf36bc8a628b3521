package e2e

import (
	"fmt"
	"strings"
	"testing"

	"egressd/test/e2e/job"
)

// framing is a request that two readers may cut differently. Whatever the gate
// does with it, no second request may arrive anywhere, and nothing at all at
// another host.
type framing struct {
	name string
	op   string // door.http: to the proxy; door.direct: captured
	raw  string
}

const (
	smuggled = "GET /smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"
	outsider = "GET http://evil.example.org/smuggled HTTP/1.1\r\nHost: evil.example.org\r\n\r\n"
)

// post is a POST head with these headers, then the body.
func post(headers, body string) string {
	return "POST http://" + exact + "/x HTTP/1.1\r\nHost: " + exact + "\r\n" + headers + "\r\n" + body
}

func framings() []framing {
	n := len(smuggled)
	chunk := fmt.Sprintf("0\r\n\r\n%s", smuggled)
	list := []struct{ name, raw string }{
		{"Content-Length and Transfer-Encoding", post("Content-Length: "+fmt.Sprint(len(chunk))+"\r\nTransfer-Encoding: chunked\r\n", chunk)},
		{"Transfer-Encoding and Content-Length", post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", chunk)},
		{"two Content-Lengths", post("Content-Length: 0\r\nContent-Length: "+fmt.Sprint(n)+"\r\n", smuggled)},
		{"a list of Content-Lengths", post("Content-Length: 0, "+fmt.Sprint(n)+"\r\n", smuggled)},
		{"a signed Content-Length", post("Content-Length: +"+fmt.Sprint(n)+"\r\n", smuggled)},
		{"a negative Content-Length", post("Content-Length: -1\r\n", smuggled)},
		{"a Content-Length in hex", post("Content-Length: 0x10\r\n", smuggled)},
		{"an empty Content-Length", post("Content-Length: \r\n", smuggled)},
		{"a Content-Length with a space in it", post("Content-Length: 1 0\r\n", smuggled)},
		{"a huge Content-Length", post("Content-Length: 99999999999999999999\r\n", smuggled)},
		{"Transfer-Encoding: xchunked", post("Transfer-Encoding: xchunked\r\n", chunk)},
		{"Transfer-Encoding: identity, chunked", post("Transfer-Encoding: identity, chunked\r\nContent-Length: 4\r\n", chunk)},
		{"Transfer-Encoding: chunked, identity", post("Transfer-Encoding: chunked, identity\r\n", chunk)},
		{"Transfer-Encoding twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunk)},
		{"Transfer-Encoding after a tab", post("Transfer-Encoding:\tchunked\r\nContent-Length: 4\r\n", chunk)},
		{"Transfer-Encoding with a vertical tab", post("Transfer-Encoding: \x0bchunked\r\nContent-Length: 4\r\n", chunk)},
		{"Transfer-Encoding in a folded line", post("X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", chunk)},
		{"a space before the colon", post("Transfer-Encoding : chunked\r\nContent-Length: 4\r\n", chunk)},
		{"a space before the header", post(" Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", chunk)},
		{"bare line feeds", strings.ReplaceAll(post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunk), "\r\n", "\n")},
		{"a bare CR before a header", post("X: y\rTransfer-Encoding: chunked\r\nContent-Length: 4\r\n", chunk)},
		{"a chunk size with a sign", post("Transfer-Encoding: chunked\r\n", "+0\r\n\r\n"+smuggled)},
		{"a chunk size that overflows", post("Transfer-Encoding: chunked\r\n", "10000000000000000\r\n\r\n"+smuggled)},
		{"a chunk extension with a bare LF", post("Transfer-Encoding: chunked\r\n", "2;\n\r\n0\r\n\r\n"+smuggled)},
		{"a chunk size line ended by LF", post("Transfer-Encoding: chunked\r\n", "0\n\n"+smuggled)},
		{"a Content-Length trailer", post("Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", "0\r\nContent-Length: "+fmt.Sprint(n)+"\r\n\r\n"+smuggled)},
		{"a NUL in a header's name", post("X\x00: y\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunk)},
		{"an upgrade to h2c", "GET http://" + exact + "/x HTTP/1.1\r\nHost: " + exact + "\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"a method with a line end", "GET\r\nX: http://" + exact + "/x HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + smuggled},
		{"two spaces in the request line", "GET  http://" + exact + "/x HTTP/1.1\r\nHost: " + exact + "\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk},
		{"HTTP/1.0 with chunks", "POST http://" + exact + "/x HTTP/1.0\r\nHost: " + exact + "\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunk},
		{"HTTP/1.2", "POST http://" + exact + "/x HTTP/1.2\r\nHost: " + exact + "\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunk},
		{"HTTP/2.0 in words", "POST http://" + exact + "/x HTTP/2.0\r\nHost: " + exact + "\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk},
	}
	var all []framing
	for _, f := range list {
		all = append(all, framing{f.name + ", to the proxy", "door.http", f.raw})
		all = append(all, framing{f.name + ", captured", "door.direct", strings.Replace(f.raw, "http://"+exact, "", 1)})
	}
	for _, f := range []struct{ name, raw string }{
		{"a second request for another host on one connection", "GET http://" + exact + "/first HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + outsider},
		{"another host in Host", "GET http://" + exact + "/x HTTP/1.1\r\nHost: evil.example.org\r\n\r\n"},
		{"a second request to another host inside a body's length", post("Content-Length: 5\r\n", "hello"+outsider)},
		{"absolute https", "GET https://" + exact + "/smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"absolute ftp", "GET ftp://" + exact + "/smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"absolute with userinfo", "GET http://" + exact + "@evil.example.org/smuggled HTTP/1.1\r\nHost: evil.example.org\r\n\r\n"},
		{"absolute with a backslash", "GET http://evil.example.org\\@" + exact + "/smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"absolute with a fragment", "GET http://evil.example.org#@" + exact + "/smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"absolute with a tab", "GET http://" + exact + "\t.evil.example.org/smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"absolute with port 0", "GET http://" + exact + ":0/smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"absolute with port 080", "GET http://" + exact + ":080/smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"absolute with port 65616", "GET http://" + exact + ":65616/smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"absolute without a host", "GET http:///smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"origin-form", "GET /smuggled HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"asterisk-form", "OPTIONS * HTTP/1.1\r\nHost: " + exact + "\r\n\r\n"},
		{"CONNECT with a body", "CONNECT evil.example.org:443 HTTP/1.1\r\nHost: " + exact + "\r\nContent-Length: " + fmt.Sprint(n) + "\r\n\r\n" + smuggled},
		{"CONNECT to one, Host of another", "CONNECT evil.example.org:80 HTTP/1.1\r\nHost: " + exact + ":80\r\n\r\n" + smuggled},
		{"CONNECT without a port", "CONNECT " + exact + " HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + smuggled},
		{"CONNECT with a leading zero", "CONNECT " + exact + ":080 HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + smuggled},
		{"CONNECT with a signed port", "CONNECT " + exact + ":+80 HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + smuggled},
		{"CONNECT with a port over 65535", "CONNECT " + exact + ":65616 HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + smuggled},
		{"CONNECT with a named port", "CONNECT " + exact + ":http HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + smuggled},
		{"CONNECT with a scheme", "CONNECT http://" + exact + ":80 HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + smuggled},
		{"CONNECT with two ports", "CONNECT " + exact + ":80:80 HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + smuggled},
		{"CONNECT with a bare LF", "CONNECT evil.example.org:80\nX: " + exact + ":80 HTTP/1.1\r\nHost: " + exact + "\r\n\r\n" + smuggled},
		{"bytes that are no protocol", "\x00\x01\x02\x03\x04EXFIL\r\n\r\n"},
		{"SOCKS6", "\x06\x00\x01" + smuggled},
		{"a SOCKS5 name that is too long for its length", "\x05\x01\x00\x05\x01\x00\x03\xffexact.example.com\x00\x50"},
		{"SOCKS5 BIND", "\x05\x01\x00\x05\x02\x00\x01\x0b\x4d\x00\x01\x00\x50"},
		{"SOCKS5 UDP ASSOCIATE", "\x05\x01\x00\x05\x03\x00\x01\x0b\x4d\x00\x01\x00\x50"},
		{"SOCKS5 of an unknown address type", "\x05\x01\x00\x05\x01\x00\x09\x0b\x4d\x00\x01\x00\x50"},
		{"SOCKS4 BIND", "\x04\x02\x00\x50\x0b\x4d\x00\x01\x00"},
	} {
		all = append(all, framing{f.name, "door.http", f.raw})
	}
	return all
}

// TestFraming sends each and looks at what arrived: at most one request a
// connection, never the smuggled one, never another host.
func TestFraming(t *testing.T) {
	needWorld(t)
	checkFraming(t, launchGate{})
}

func checkFraming(t *testing.T, at gate) {
	t.Helper()
	asEachOf(t, at.people(), func(t *testing.T, who person) {
		list := framings()
		s := session{who: who, flags: names}
		for i, f := range list {
			j := job.Job{ID: fmt.Sprint(i), Op: f.op, Host: exact, Port: 80}
			if f.op == "door.http" {
				j.Raw = []byte(f.raw)
			} else {
				j.Payload = raw(f.raw)
			}
			s.jobs = append(s.jobs, j)
		}
		before := at.watch()
		e := at.run(t, s)
		seen := before.end(t)
		t.Logf("%d requests", len(list))
		for _, v := range seen.visits {
			if strings.Contains(v.Path, "smuggled") || strings.Contains(v.Bytes, "smuggled") {
				t.Errorf("a smuggled request arrived: %+v", v)
			}
			if v.Host != "" && v.Host != exact {
				t.Errorf("a request for another host arrived: %+v", v)
			}
			if strings.Contains(v.Bytes, "EXFIL") {
				t.Errorf("bytes arrived that are no HTTP: %+v", v)
			}
		}
		for _, q := range seen.questions {
			if name, _, _ := strings.Cut(q, " "); name != exact {
				t.Errorf("a DNS question was asked for %s", q)
			}
		}
		if e.code != 0 {
			t.Errorf("the gate exited with %d: %.500s", e.code, e.stderr)
		}
	})
}
