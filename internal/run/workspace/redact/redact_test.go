package redact

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const token = `s3cr&t "Tok<en>/+x 'q\ü~9?=z`

// encodings are ways to write a value, each of which must be found.
func encodings() map[string]func(v string) string {
	b64 := base64.StdEncoding.EncodeToString
	join := func(v, format, sep string) string {
		parts := make([]string, len(v))
		for i := range len(v) {
			parts[i] = fmt.Sprintf(format, v[i])
		}
		return strings.Join(parts, sep)
	}
	wrap := func(s string, n int, with string) string {
		var out []string
		for c := range slices.Chunk([]byte(s), n) {
			out = append(out, string(c))
		}
		return strings.Join(out, with)
	}
	pack := func(v string, w io.WriteCloser, to *bytes.Buffer) string {
		_, _ = io.WriteString(w, "before "+v+" after")
		_ = w.Close()
		return to.String()
	}
	jsonOf := func(v string) string { b, _ := json.Marshal(v); return string(b) }
	all := map[string]func(v string) string{
		"plain":            func(v string) string { return v },
		"base64 +0":        b64m(""),
		"base64 +1":        b64m("a"),
		"base64 +2":        b64m("ab"),
		"base64 raw":       func(v string) string { return base64.RawStdEncoding.EncodeToString([]byte(v + "tail")) },
		"base64url +0":     func(v string) string { return base64.URLEncoding.EncodeToString([]byte(v)) },
		"base64url +1":     func(v string) string { return base64.URLEncoding.EncodeToString([]byte("u" + v)) },
		"basic auth":       func(v string) string { return "Authorization: Basic " + b64([]byte("user:"+v)) },
		"base64 wrapped":   func(v string) string { return wrap(b64([]byte(v+v+v)), 20, "\r\n    ") },
		"base64 twice":     func(v string) string { return b64([]byte(b64([]byte(v)))) },
		"base64 of hex":    func(v string) string { return b64([]byte(hex.EncodeToString([]byte(v)))) },
		"base64 of UTF-16": func(v string) string { return b64([]byte(utf16Text(v))) },
		"base32":           func(v string) string { return base32.StdEncoding.EncodeToString([]byte(v)) },
		"base32 +3":        func(v string) string { return base32.StdEncoding.EncodeToString([]byte("abc" + v)) },
		"hex":              func(v string) string { return hex.EncodeToString([]byte(v)) },
		"HEX":              func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
		"hex, colons":      func(v string) string { return join(v, "%02x", ":") },
		"xxd":              func(v string) string { return wrap(hex.EncodeToString([]byte(v)), 4, " ") },
		"\\x":              func(v string) string { return join(v, `\x%02x`, "") },
		"octal":            func(v string) string { return join(v, `\%03o`, "") },
		"percent all":      func(v string) string { return join(v, "%%%02X", "") },
		"percent lower":    func(v string) string { return join(v, "%%%02x", "") },
		"query":            url.QueryEscape,
		"path":             url.PathEscape,
		"JSON":             jsonOf,
		"JSON in JSON":     func(v string) string { return jsonOf(jsonOf(v)) },
		"entities":         html.EscapeString,
		"entities, numbers": func(v string) string {
			return join(strings.ReplaceAll(v, "ü", "~"), "&#%d;", "")
		},
		"quoted-printable": func(v string) string { return join(v, "=%02X", "=\r\n") },
		"shell":            func(v string) string { return "'" + strings.ReplaceAll(v, "'", `'\''`) + "'" },
		"decimal list":     func(v string) string { return join(v, "%d", ", ") },
		"hex list":         func(v string) string { return join(v, "0x%02x", ", ") },
		"UTF-16":           utf16Text,
		"back to front":    func(v string) string { b := []byte(v); slices.Reverse(b); return string(b) },
		"broken lines":     func(v string) string { return wrap(v, 5, "\n") },
		"gzip":             func(v string) string { var b bytes.Buffer; return pack(v, gzip.NewWriter(&b), &b) },
		"zlib":             func(v string) string { var b bytes.Buffer; return pack(v, zlib.NewWriter(&b), &b) },
		"zip": func(v string) string {
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			w, _ := z.Create("name")
			_, _ = io.WriteString(w, strings.Repeat(v, 3))
			_ = z.Close()
			return b.String()
		},
	}
	all["gzip twice"] = func(v string) string { return all["gzip"](all["gzip"](v)) }
	all["base64 in gzip"] = func(v string) string { return all["gzip"](b64([]byte(v))) }
	return all
}

func b64m(before string) func(v string) string {
	return func(v string) string { return base64.StdEncoding.EncodeToString([]byte(before + v + "!")) }
}

// ascii is token for encodings that have no such thing as ü.
const ascii = `s3cr&t "Tok<en>/+x 'q\u~9?=z`

func TestEveryEncoding(t *testing.T) {
	for name, encode := range encodings() {
		for _, value := range []string{token, ascii, "ghp_0123456789abcdefABCDEF", "correct horse battery"} {
			if name == "entities, numbers" || strings.Contains(name, "UTF-16") {
				value = strings.ReplaceAll(value, "ü", "~")
			}
			r := New([]Secret{{"TOKEN", value}})
			data := []byte("\xff\x00head " + encode(value) + " \x00\xfetail")
			out, err := r.Redact(data)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(out, []byte("[REDACTED:TOKEN]")) {
				t.Errorf("%s of %q is not found: %q", name, value, data)
			}
			if bytes.Contains(out, []byte(value)) {
				t.Errorf("%s of %q: it is still there: %q", name, value, out)
			}
			if !bytes.HasPrefix(out, []byte("\xff\x00head ")) || !bytes.HasSuffix(out, []byte(" \x00\xfetail")) {
				t.Errorf("%s: what is beside it has changed: %q", name, out)
			}
			if again, err := r.Found(out); again != "" || err != nil {
				t.Errorf("%s: found again: %s %v", name, again, err)
			}
		}
	}
}

// What looks like nothing is left alone, byte for byte.
func TestInnocent(t *testing.T) {
	r := New([]Secret{{"TOKEN", token}, {"EMPTY", ""}, {"SHORT", "no"}})
	var data []byte
	for i := range 1 << 16 {
		data = append(data, byte(i*7), byte(i>>8))
	}
	data = bytes.ReplaceAll(data, []byte("no"), []byte("on"))
	out, err := r.Redact(data)
	if err != nil || !bytes.Equal(out, data) {
		t.Errorf("innocent bytes have changed: %v", err)
	}
	if out, _ := r.Redact([]byte("it is no use: %6E%6F")); string(out) != "it is [REDACTED:SHORT] use: %6E%6F" {
		t.Errorf("short: %q", out)
	}
}

// A secret that is part of another leaves no tail, whatever their order.
func TestWithinEachOther(t *testing.T) {
	for _, secrets := range [][]Secret{
		{{"A", "hunter2"}, {"B", "hunter2-and-more"}}, {{"B", "hunter2-and-more"}, {"A", "hunter2"}},
	} {
		out, err := New(secrets).Redact([]byte("x hunter2-and-more y hunter2 z"))
		if err != nil || string(out) != "x [REDACTED:B] y [REDACTED:A] z" {
			t.Errorf("%q %v", out, err)
		}
	}
	out, _ := New([]Secret{{"A", "abcdefgh"}, {"B", "efghijkl"}}).Redact([]byte("<abcdefghijkl>"))
	if string(out) != "<[REDACTED:A]>" {
		t.Errorf("overlap: %q", out)
	}
}

const pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\nAAAAB3NzaC1yc2EAAAADAQABAAABgQC7\n-----END PRIVATE KEY-----\n"

// A value of several lines: indented, with other line ends, escaped, or one line of it.
func TestLines(t *testing.T) {
	r := New([]Secret{{"KEY", pem}})
	for name, text := range map[string]string{
		"as it is": pem,
		"indented": "key: |\n  " + strings.ReplaceAll(pem, "\n", "\n  "),
		"crlf":     strings.ReplaceAll(pem, "\n", "\r\n"),
		"escaped":  `{"key":"` + strings.ReplaceAll(pem, "\n", `\n`) + `"}`,
		"query":    url.QueryEscape(pem),
		"one line": "AAAAB3NzaC1yc2EAAAADAQABAAABgQC7",
		"base64":   base64.StdEncoding.EncodeToString([]byte(pem)),
	} {
		out, err := r.Redact([]byte(text))
		if err != nil || !bytes.Contains(out, []byte("[REDACTED:KEY]")) || bytes.Contains(out, []byte("AAAAB3Nza")) {
			t.Errorf("%s: %q %v", name, out, err)
		}
	}
}

// An archive that unpacks to more than is searched may not leave.
func TestBomb(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	zero := make([]byte, 1<<20)
	for range 3 {
		_, _ = z.Write(zero)
	}
	_ = z.Close()
	r := New([]Secret{{"T", token}})
	r.limit = 2 << 20
	if _, err := r.Redact(b.Bytes()); !errors.Is(err, ErrTooLarge) {
		t.Error("a bomb went through")
	}
	if _, err := New(nil).Redact(b.Bytes()); err != nil {
		t.Errorf("without secrets nothing is searched: %v", err)
	}
}
