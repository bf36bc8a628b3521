package inbound

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"egressd/proxy/internal/http1"
)

// statusLine writes the first line of a response.
func (w *Writer) statusLine(status int) {
	phrase := w.phrase
	if phrase == "" || status < 200 {
		phrase = http.StatusText(status)
	}
	if phrase == "" {
		phrase = "status code " + strconv.Itoa(status)
	}
	w.put("HTTP/1.1 ")
	w.put(strconv.Itoa(status))
	w.put(" ")
	w.value(phrase)
	w.put("\r\n")
}

// fields writes the fields of the header, in the order of their names, but those
// that say what the Writer sees to by itself.
func (w *Writer) fields() {
	var room [32]string
	names := room[:0]
	for name := range w.header {
		switch name {
		case "Connection", "Transfer-Encoding", "Keep-Alive":
			continue
		case "Content-Length":
			if w.length < 0 {
				continue
			}
		}
		if !strings.HasPrefix(name, http.TrailerPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range w.header[name] {
			w.field(name, v)
		}
	}
}

// field writes one field line. A name that is not a token is left out.
func (w *Writer) field(name, value string) {
	if !http1.IsToken(name) {
		return
	}
	w.put(name)
	w.put(": ")
	w.value(value)
	w.put("\r\n")
}

// value writes a field value.
//
// Threat: a value with a line break in it adds fields or a second response, which
// the client takes for the answer to its next request -> no control byte is
// written; a space stands in its place.
func (w *Writer) value(v string) {
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			w.put(strings.Map(printable, v))
			return
		}
	}
	w.put(v)
}

func printable(r rune) rune {
	if r < ' ' && r != '\t' || r == 0x7f {
		return ' '
	}
	return r
}

// announced reports the names in Trailer.
func announced(h http.Header) (names []string) {
	for _, list := range h["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.TrimString(name); name != "" {
				names = append(names, http.CanonicalHeaderKey(name))
			}
		}
	}
	return names
}

// trailers writes the trailers: fields that were announced, and those with
// http.TrailerPrefix.
func (w *Writer) trailers() {
	names := w.announced
	for name := range w.header {
		if rest, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			for _, v := range w.header[name] {
				w.field(rest, v)
			}
		}
	}
	for _, name := range names {
		for _, v := range w.header[name] {
			w.field(name, v)
		}
	}
}
