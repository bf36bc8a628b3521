package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestResponsesRefuse holds what two parsers have been seen to read in two ways.
func TestResponsesRefuse(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, tt := range []struct {
		name, in string
		detail   string // part of it
	}{
		{"length and encoding", ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "both"},
		{"encoding and length", ok + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "both"},
		{"two lengths", ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "more than one Content-Length"},
		{"the same length twice", ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "more than one Content-Length"},
		{"two lengths in one field", ok + "Content-Length: 5, 5\r\n\r\nhello", "decimal"},
		{"a negative length", ok + "Content-Length: -1\r\n\r\n", "decimal"},
		{"a signed length", ok + "Content-Length: +5\r\n\r\nhello", "decimal"},
		{"a length over int64", ok + "Content-Length: 9223372036854775808\r\n\r\n", "decimal"},
		{"a hexadecimal length", ok + "Content-Length: 0x5\r\n\r\nhello", "decimal"},
		{"no length", ok + "Content-Length:\r\n\r\n", "decimal"},
		{"two encodings", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "more than one Transfer-Encoding"},
		{"gzip, chunked", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "exactly"},
		{"identity", ok + "Transfer-Encoding: identity\r\n\r\n", "exactly"},
		{"an encoding with a vertical tab", ok + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", "control"},
		{"chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0"},
		{"chunked 204", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "no content"},
		{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "no content"},
		{"103 with a length", "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nhello", "no content"},

		{"bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", "LF without CR"},
		{"bare LF in a field", ok + "A: b\nContent-Length: 0\r\n\r\n", "LF without CR"},
		{"bare LF at the end", ok + "Content-Length: 0\r\n\n", "LF without CR"},
		{"bare CR", ok + "A: b\rContent-Length: 5\r\n\r\n", "not followed by LF"},
		{"CR CR LF", ok + "Content-Length: 0\r\r\n\r\n", "not followed by LF"},
		{"folded line", ok + "A: b\r\n Content-Length: 5\r\n\r\n", "folded"},
		{"folded first line", ok + " A: b\r\n\r\n", "folded"},
		{"space before the colon", ok + "Content-Length : 5\r\n\r\nhello", "before the colon"},
		{"tab before the colon", ok + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", "before the colon"},
		{"no name", ok + ": 5\r\n\r\n", "token"},
		{"no colon", ok + "Content-Length 5\r\n\r\n", "no colon"},
		{"nul in a value", ok + "A: b\x00\r\n\r\n", "control"},

		{"an empty line first", "\r\n" + ok + "\r\n", "begin with"},
		{"no version", "200 OK\r\n\r\n", "begin with"},
		{"another protocol", "SSH-2.0-x\r\n\r\n", "begin with"},
		{"version 2", "HTTP/2.0 200 OK\r\n\r\n", "begin with"},
		{"version 1.2", "HTTP/1.2 200 OK\r\n\r\n", "version"},
		{"lower case", "http/1.1 200 OK\r\n\r\n", "begin with"},
		{"two digits", "HTTP/1.1 20 OK\r\n\r\n", "status line"},
		{"four digits", "HTTP/1.1 2000 OK\r\n\r\n", "status line"},
		{"no number", "HTTP/1.1 2x0 OK\r\n\r\n", "status line"},
		{"signed number", "HTTP/1.1 +20 OK\r\n\r\n", "status line"},
		{"two spaces", "HTTP/1.1  200 OK\r\n\r\n", "status line"},
		{"tab for a space", "HTTP/1.1\t200 OK\r\n\r\n", "status line"},
		{"code 99", "HTTP/1.1 099 X\r\n\r\n", "below 100"},
		{"nul in the reason", "HTTP/1.1 200 O\x00K\r\n\r\n", "reason phrase"},
		{"too large a head", ok + strings.Repeat("A: "+strings.Repeat("b", 1000)+"\r\n", 40) + "\r\n", "too large"},
		{"a trailer that frames", ok + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\n\r\n", "may not be a trailer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, src := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				r := &Responses{Source: src}
				r.Begin(make([]byte, 4<<10))
				_, err := r.Next("GET")
				var bad *Error
				if !errors.As(err, &bad) || !strings.Contains(bad.Detail, tt.detail) {
					t.Errorf("%v, want %q", err, tt.detail)
				}
				if _, again := r.Next("GET"); again == nil || r.End() {
					t.Error("the connection can be used again")
				}
			}
		})
	}
}

// TestResponsesCutShort holds content that is not whole: none of it may end in EOF.
func TestResponsesCutShort(t *testing.T) {
	const length, chunked = "Content-Length: 10\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"
	for _, tt := range []struct{ name, in, want string }{
		{"length", length + "hello", "hello"},
		{"no content at all", length, ""},
		{"chunk", chunked + "5\r\nhel", "hel"},
		{"between chunks", chunked + "5\r\nhello\r\n", "hello"},
		{"no last empty line", chunked + "5\r\nhello\r\n0\r\n", "hello"},
		{"in a trailer", chunked + "5\r\nhello\r\n0\r\nX-A: b\r\n", "hello"},
		{"a chunk longer than it says", chunked + "5\r\nhello!\r\n0\r\n\r\n", "hello"},
		{"a chunk that ends in LF", chunked + "5\r\nhello\n0\r\n\r\n", "hello"},
		{"a size that ends in LF", chunked + "5\nhello\r\n0\r\n\r\n", ""},
		{"a negative size", chunked + "-5\r\nhello\r\n0\r\n\r\n", ""},
		{"a prefixed size", chunked + "0x5\r\nhello\r\n0\r\n\r\n", ""},
		{"a size over int64", chunked + "ffffffffffffffff\r\nhello\r\n0\r\n\r\n", ""},
		{"a size of 17 digits", chunked + "00000000000000005\r\nhello\r\n0\r\n\r\n", ""},
		{"no size", chunked + "\r\nhello\r\n0\r\n\r\n", ""},
		{"a space before the size", chunked + " 5\r\nhello\r\n0\r\n\r\n", ""},
		{"a space behind the size", chunked + "5 \r\nhello\r\n0\r\n\r\n", ""},
		{"LF in an extension", chunked + "5;a\nb\r\nhello\r\n0\r\n\r\n", ""},
		{"CR in an extension", chunked + "5;a\rb\r\nhello\r\n0\r\n\r\n", ""},
		{"an extension without end", chunked + "5;" + strings.Repeat("a", 300) + "\r\nhello\r\n0\r\n\r\n", ""},
		{"many extensions", chunked + strings.Repeat("1;"+strings.Repeat("a", 200)+"\r\nx\r\n", 90) + "0\r\n\r\n", strings.Repeat("x", 81)},
		{"a trailer that frames", chunked + "5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n", "hello"},
		{"a folded trailer", chunked + "5\r\nhello\r\n0\r\nX-A: b\r\n c\r\n\r\n", "hello"},
		{"trailers without end", chunked + "0\r\n" + strings.Repeat("X-A: "+strings.Repeat("b", 1000)+"\r\n", 20) + "\r\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := "HTTP/1.1 200 OK\r\n" + tt.in
			for _, src := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
				r := &Responses{Source: src}
				r.Begin(make([]byte, 4<<10))
				if _, err := r.Next("GET"); err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(r)
				if err == nil || string(got) != tt.want {
					t.Errorf("%q, %v", got, err)
				}
				if r.End() {
					t.Error("the connection can be used again")
				}
			}
		})
	}
}

// TestResponsesReuse says after which responses another request may follow.
func TestResponsesReuse(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, tt := range []struct {
		name, method, in, want string
		again                  bool
	}{
		{"length", "GET", ok + "Content-Length: 5\r\n\r\nhello", "hello", true},
		{"no content", "GET", ok + "Content-Length: 0\r\n\r\n", "", true},
		{"chunks", "GET", ok + "Transfer-Encoding: Chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "hello", true},
		{"HEAD", "HEAD", ok + "Content-Length: 5\r\n\r\n", "", true},
		{"204", "GET", "HTTP/1.1 204\r\n\r\n", "", true},
		{"304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", true},
		{"bytes behind the content", "GET", ok + "Content-Length: 5\r\n\r\nhello!", "hello", false},
		{"a response behind the content", "GET", ok + "Content-Length: 5\r\n\r\nhello" + ok + "\r\n", "hello", false},
		{"bytes behind the last chunk", "GET", ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n!", "", false},
		{"content for HEAD", "HEAD", ok + "Content-Length: 5\r\n\r\nhello", "", false},
		{"content with 304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", "", false},
		{"close", "GET", ok + "Connection: x, CLOSE\r\nContent-Length: 5\r\n\r\nhello", "hello", false},
		{"to the end", "GET", ok + "\r\nhello", "hello", false},
		{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", "hello", false},
		{"half read", "HALF", ok + "Content-Length: 5\r\n\r\nhello", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &Responses{Source: strings.NewReader(tt.in)}
			r.Begin(make([]byte, 4<<10))
			if _, err := r.Next(tt.method); err != nil {
				t.Fatal(err)
			}
			if tt.method != "HALF" {
				if got, err := io.ReadAll(r); string(got) != tt.want || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			}
			if r.End() != tt.again {
				t.Errorf("another request may follow: %v", !tt.again)
			}
		})
	}
}

// TestResponsesReady says what a Read does not wait for: each step is one write
// of the origin, and the content that can be read then.
func TestResponsesReady(t *testing.T) {
	pr, pw := io.Pipe()
	defer pr.Close()
	r := &Responses{Source: pr}
	r.Begin(make([]byte, 4<<10))
	go func() { _, _ = io.WriteString(pw, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na") }()
	if _, err := r.Next("GET"); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct{ more, want string }{{"", "a"}, {"bc\r", "bc"}, {"\n1\r\nd\r\n0\r\n", "d"}, {"\r\n", ""}} {
		if i > 0 {
			if r.Ready() {
				t.Fatalf("ready before %q", step.more)
			}
			go func() { _, _ = io.WriteString(pw, step.more) }()
		}
		b := make([]byte, 10)
		n, err := r.Read(b)
		if string(b[:n]) != step.want || err != nil && err != io.EOF {
			t.Fatalf("%q, %v, want %q", b[:n], err, step.want)
		}
	}
	if !r.Ready() || !r.End() {
		t.Error("the end of the content has not been seen")
	}
}

// FuzzResponses feeds any stream and takes net/http as the oracle: whatever is
// accepted here, net/http reads as the same response, and what follows begins at
// the same place.
func FuzzResponses(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n3;x\r\nabc\r\n0\r\nX-A: b\r\n\r\nHTTP/1.1 204\r\n\r\n",
		"HTTP/1.0 404 Not\r\nA: b\r\na: c \r\n\r\nrest", "HTTP/1.1 103 Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 304 N\r\nContent-Length: 9\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	} {
		for _, how := range []byte{0, 1, 2, 3} {
			f.Add([]byte(s), how)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, how byte) {
		method, src := "GET", io.Reader(bytes.NewReader(in))
		if how&1 != 0 {
			method = "HEAD"
		}
		if how&2 != 0 {
			src = iotest.OneByteReader(src)
		}
		r, theirs := &Responses{Source: src}, bufio.NewReader(bytes.NewReader(in))
		r.Begin(make([]byte, 4<<10))
		for {
			got, err := r.Next(method)
			if err != nil {
				return
			}
			want, err := http.ReadResponse(theirs, &http.Request{Method: method})
			if err != nil {
				t.Fatalf("net/http refuses a head that is accepted: %v in %q", err, in)
			}
			sameHead(t, in, got, want)
			body, err := io.ReadAll(r)
			if err != nil {
				return // cut short: the client sees that
			}
			wantBody, err := io.ReadAll(want.Body)
			if err != nil || !bytes.Equal(body, wantBody) {
				t.Fatalf("content %q, net/http %q, %v, in %q", body, wantBody, err, in)
			}
			if want, got := fmt.Sprint(want.Trailer), fmt.Sprint(http.Header(got.Trailer)); want != got && method != "HEAD" {
				t.Fatalf("trailers %s, net/http %s, in %q", got, want, in)
			}
		}
	})
}

func sameHead(t *testing.T, in []byte, got *Response, want *http.Response) {
	t.Helper()
	if got.Status != want.StatusCode || got.Minor != want.ProtoMinor || !got.Last && want.Close {
		t.Fatalf("%d HTTP/1.%d last %v, net/http %d %s %v, in %q", got.Status, got.Minor, got.Last, want.StatusCode, want.Proto, want.Close, in)
	}
	h := maps.Clone(http.Header(got.Header))
	if _, ok := h["Cache-Control"]; !ok {
		delete(want.Header, "Cache-Control") // net/http makes one of Pragma
	}
	if got.Status < 200 || got.Status == 204 {
		delete(want.Header, "Content-Length") // 0 is dropped
	}
	if !maps.EqualFunc(h, want.Header, slices.Equal[[]string]) {
		t.Fatalf("fields %q, net/http %q, in %q", h, want.Header, in)
	}
}
