package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
)

func TestSecretInBasicCredentials(t *testing.T) {
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	equal(t, "as a password", reveal(basic("x-access-token:ph"), "ph", "worth"), basic("x-access-token:worth"))
	equal(t, "other credentials", reveal(basic("user:pass"), "ph", "worth"), basic("user:pass"))
	equal(t, "not base64", reveal("Basic ph!", "ph", "worth"), "Basic worth!")
}

const worth = `sk-r<a/l"v\lue-0123456789+x`

// spellings are the ways in which an origin sends worth back.
func spellings(t *testing.T) map[string]string {
	t.Helper()
	quoted, err := json.Marshal("a" + worth)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"plain":      worth,
		"in JSON":    string(quoted),
		"in a query": "?a=" + url.QueryEscape(worth),
		"in a path":  "/" + url.PathEscape(worth),
		"base64":     base64.StdEncoding.EncodeToString([]byte(worth)),
		"base64, 1":  base64.StdEncoding.EncodeToString([]byte("u" + worth + "xx")),
		"base64, 2":  base64.URLEncoding.EncodeToString([]byte("us" + worth)),
	}
}

func maskOf(text, stand string) *Mask {
	m := &Mask{new(search)}
	m.values.add(text, "TOKEN", stand)
	return m
}

// A value is masked wherever the reads cut it, and the length stays.
func TestMaskContent(t *testing.T) {
	m := maskOf(worth, "ph")
	for name, text := range spellings(t) {
		text = "before " + text + " after"
		for cut := range len(text) {
			r := io.MultiReader(strings.NewReader(text[:cut]), strings.NewReader(text[cut:]))
			got, err := io.ReadAll(m.Content(io.NopCloser(r)))
			if err != nil || len(got) != len(text) || !bytes.HasPrefix(got, []byte("before ")) || !bytes.HasSuffix(got, []byte(" after")) {
				t.Fatalf("%s, cut at %d: %q, %v", name, cut, got, err)
			}
			// At most the few bytes that went on before the rest came.
			if left := strings.Count(string(got), "*"); left < len(text)/2-10 {
				t.Errorf("%s, cut at %d: %q", name, cut, got)
			}
		}
		got, err := io.ReadAll(m.Content(io.NopCloser(iotest.OneByteReader(strings.NewReader(text)))))
		if err != nil || !bytes.Contains(got, []byte("********")) {
			t.Errorf("%s, byte by byte: %q, %v", name, got, err)
		}
	}
}

func TestMaskKeepsTheLength(t *testing.T) {
	m := maskOf("sk-0123", "place-1")
	h := http.Header{"X-Echo": {"a sk-0123 b", "sk-012"}}
	m.Fields(h)
	equal(t, "as long as the placeholder", h["X-Echo"][0], "a place-1 b")
	equal(t, "something else", h["X-Echo"][1], "sk-012")
	m = maskOf("sk-0123", "place")
	h = http.Header{"X-Echo": {"a sk-0123 b"}}
	m.Fields(h)
	equal(t, "of another length", h["X-Echo"][0], "a ******* b")
	equal(t, "nothing to mask", maskOf("abc", "").values.longest, 0)
}

// A message that ends like the beginning of a value arrives at once; what is held
// back when a connection breaks is not given on.
func TestMaskHoldsBackLittle(t *testing.T) {
	m := maskOf("sk-0123456789", "")
	pr, pw := io.Pipe()
	r := m.Content(pr)
	go func() {
		_, _ = pw.Write([]byte("ask sk-"))
		_, _ = pw.Write([]byte("0123456789 and sk-0123"))
		_ = pw.CloseWithError(errors.New("broken"))
	}()
	b := make([]byte, 100)
	n, err := r.Read(b)
	equal(t, "the first message", string(b[:n]), "ask sk-")
	equal(t, "its error", err, nil)
	rest, err := io.ReadAll(r)
	equal(t, "the rest", string(rest), "********** and ")
	equal(t, "the error", err.Error(), "broken")
}

func TestMaskAsks(t *testing.T) {
	h := http.Header{"Accept-Encoding": {"gzip, br"}, "Sec-Websocket-Extensions": {"permessage-deflate"}}
	m := maskOf(worth, "")
	m.Ask(h)
	equal(t, "encoding", h.Get("Accept-Encoding"), "identity")
	equal(t, "extensions", h.Get("Sec-Websocket-Extensions"), "")
	equal(t, "gzip", m.Readable(http.Header{"Content-Encoding": {"gzip"}}), false)
	equal(t, "identity", m.Readable(http.Header{"Content-Encoding": {"identity"}}), true)
	var none *Mask
	equal(t, "no secret", none.Readable(http.Header{"Content-Encoding": {"gzip"}}), true)
}

// A placeholder in content is found wherever it is cut, and does not leave whole.
func TestWatch(t *testing.T) {
	const placeholder = "egressd-placeholder-TOKEN"
	s := &Set{byEnv: map[string]known{"TOKEN": {placeholder, worth}}, placed: new(search)}
	s.placed.add(placeholder, "TOKEN", "")
	no := errors.New("no")
	for name, text := range map[string]string{
		"plain":   "a=" + placeholder + "&b=c",
		"base64":  base64.StdEncoding.EncodeToString([]byte("user:" + placeholder)),
		"the end": placeholder,
	} {
		for cut := range len(text) {
			r := io.MultiReader(strings.NewReader(text[:cut]), strings.NewReader(text[cut:]))
			met := ""
			got, err := io.ReadAll(s.Watch(io.NopCloser(r), func(env string) error { met = env; return no }, func() error { return nil }))
			if !errors.Is(err, no) || met != "TOKEN" || strings.Contains(string(got), placeholder) {
				t.Errorf("%s, cut at %d: %q, %v", name, cut, got, err)
			}
		}
		one := s.Watch(io.NopCloser(iotest.OneByteReader(strings.NewReader(text))), func(string) error { return no }, func() error { return nil })
		if _, err := io.ReadAll(one); !errors.Is(err, no) {
			t.Errorf("%s, byte by byte: %v", name, err)
		}
		let, err := io.ReadAll(s.Watch(io.NopCloser(strings.NewReader(text)), func(string) error { return nil }, func() error { return nil }))
		if err != nil || string(let) != text {
			t.Errorf("%s, let pass: %q, %v", name, let, err)
		}
	}
	trailers := s.Watch(io.NopCloser(strings.NewReader("fine")), func(string) error { return nil }, func() error { return no })
	if _, err := io.ReadAll(trailers); !errors.Is(err, no) {
		t.Errorf("the end: %v", err)
	}
}

func equal[T comparable](t *testing.T, name string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", name, got, want)
	}
}
