package secret

import (
	"io"
	"net/http"

	"egressd/policy"
)

// readBytes is how much of a response is searched at a time.
const readBytes = 32 << 10

// Watch reports what reads content on its way out through r. It calls found with
// the variable of a secret whose placeholder it meets, before the last byte of that
// is read, and ends with the error of found unless that is nil; then it looks no
// further. At the end of r it calls atEnd.
func (s *Set) Watch(r io.ReadCloser, found func(env string) error, atEnd func() error) io.ReadCloser {
	if s == nil || r == nil || r == http.NoBody || s.placed.longest == 0 {
		return r
	}
	return &watched{ReadCloser: r, s: s.placed, found: found, atEnd: atEnd}
}

// watched holds no byte back: it remembers the last ones.
type watched struct {
	io.ReadCloser
	s     *search // nil: it has been found, and let pass
	found func(env string) error
	atEnd func() error
	err   error
	seen  []byte // the end of what was read, shorter than the longest text
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.ReadCloser.Read(p)
	if n > 0 && w.s != nil {
		if w.err = w.look(p[:n]); w.err != nil {
			return 0, w.err
		}
	}
	if err == io.EOF { //nolint:errorlint // io.Reader: EOF comes bare
		if w.err = w.atEnd(); w.err != nil {
			return 0, w.err
		}
	}
	return n, err
}

func (w *watched) look(p []byte) error {
	overlap := w.s.longest - 1
	w.seen = append(w.seen, p[:min(len(p), overlap)]...)
	env := w.s.first(w.seen)
	if env == "" {
		env = w.s.first(p)
	}
	if env != "" {
		w.s, w.seen = nil, nil
		return w.found(env)
	}
	if len(p) >= overlap {
		w.seen = append(w.seen[:0], p[len(p)-overlap:]...)
	} else if extra := len(w.seen) - overlap; extra > 0 {
		w.seen = append(w.seen[:0], w.seen[extra:]...)
	}
	return nil
}

// Mask keeps the values that went to one host out of what comes back. A nil Mask
// keeps nothing out.
//
// Threat: a program inside asks an origin that has the secret to send it back: in
// a field, an error page, an echo -> the value is replaced by as many bytes, in
// fields, trailers and content, also across the borders of reads, in base64,
// percent-encoded and escaped in JSON. Left over: an origin that transforms it in
// another way, or sends it in parts (ranges, several answers); values shorter than
// four bytes.
type Mask struct{ values *search }

// Mask reports the mask for responses of host and port; nil if no secret goes there.
func (s *Set) Mask(host policy.Host, port uint16) *Mask {
	if s == nil {
		return nil
	}
	var m *Mask
	for _, secret := range s.policy.SecretsFor(host, port) {
		if known, ok := s.byEnv[secret.Env]; ok {
			if m == nil {
				m = &Mask{new(search)}
			}
			m.values.add(known.value, secret.Env, known.placeholder)
		}
	}
	return m
}

// Ask makes an outgoing request one whose response can be searched: without
// compression, of content or of WebSocket messages.
func (m *Mask) Ask(h http.Header) {
	if m == nil {
		return
	}
	h["Accept-Encoding"] = []string{"identity"}
	delete(h, "Sec-Websocket-Extensions")
}

// Readable reports whether content with the fields h can be searched.
func (m *Mask) Readable(h http.Header) bool {
	if m == nil {
		return true
	}
	for _, v := range h["Content-Encoding"] {
		if v != "" && v != "identity" {
			return false
		}
	}
	return true
}

// Fields masks the fields of h.
func (m *Mask) Fields(h http.Header) {
	if m == nil {
		return
	}
	for _, values := range h {
		for i, v := range values {
			b := []byte(v)
			m.values.mask(b)
			values[i] = string(b)
		}
	}
}

// Content reports what reads content that arrives through r.
func (m *Mask) Content(r io.ReadCloser) io.ReadCloser {
	if m == nil || r == nil || r == http.NoBody {
		return r
	}
	return &masked{ReadCloser: r, s: m.values}
}

// masked holds back what may be the beginning of a value, from minPlain bytes on:
// a message that ends with fewer arrives at once, and what follows is still
// compared with the whole value.
type masked struct {
	io.ReadCloser
	s     *search
	buf   []byte // given on, ready, held back, in this order
	given int    // bytes of buf: the last ones that were given on
	ready int    // bytes of buf behind them that can be
	err   error  // of the reader, once nothing is ready
}

// Read implements io.Reader.
func (m *masked) Read(p []byte) (int, error) {
	for m.ready == 0 && m.err == nil {
		m.fill()
	}
	if m.ready == 0 {
		return 0, m.err
	}
	n := copy(p, m.buf[m.given:m.given+m.ready])
	m.given += n
	m.ready -= n
	return n, nil
}

// fill reads once. What is held back when the reader breaks off is never given on.
func (m *masked) fill() {
	if m.buf == nil {
		m.buf = make([]byte, 0, minPlain+m.s.longest+readBytes)
	}
	keep := min(m.given, minPlain-1)
	m.buf = m.buf[:copy(m.buf, m.buf[m.given-keep:])]
	m.given = keep
	old := len(m.buf)
	n, err := m.ReadCloser.Read(m.buf[old : old+readBytes])
	m.buf, m.err = m.buf[:old+n], err
	m.s.mask(m.buf)
	held := 0
	if err != io.EOF { //nolint:errorlint // io.Reader: EOF comes bare
		if held = m.s.open(m.buf); held < minPlain {
			held = 0
		}
	}
	m.ready = len(m.buf) - m.given - min(held, len(m.buf)-m.given)
}
