package curl

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// writeOut is -w.
func (x *transfer) writeOut() {
	format := x.s.format
	if format == "" {
		return
	}
	w := writer{x: x, to: x.stdout}
	for i := 0; i < len(format); i++ {
		c := format[i]
		switch {
		case c == '\\' && i+1 < len(format):
			i++
			w.put(escapeOf(format[i]))
		case c == '%' && strings.HasPrefix(format[i:], "%%"):
			i++
			w.put("%")
		case c == '%' && strings.HasPrefix(format[i:], "%{"):
			end := strings.IndexByte(format[i:], '}')
			if end < 0 {
				w.put(format[i:])
				return
			}
			if !w.variable(format[i+2 : i+end]) {
				return
			}
			i += end
		case c == '%' && strings.HasPrefix(format[i:], "%header{"):
			end := strings.IndexByte(format[i:], '}')
			if end < 0 {
				w.put(format[i:])
				return
			}
			w.put(w.Header(format[i+len("%header{") : i+end]))
			i += end
		default:
			w.put(string(c))
		}
	}
}

func escapeOf(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 't':
		return "\t"
	}
	return `\` + string(c)
}

type writer struct {
	x  *transfer
	to io.Writer
}

func (w *writer) put(s string) { _, _ = io.WriteString(w.to, s) } // the sink remembers

func (w *writer) Header(name string) string {
	a := w.x.stats.answer
	if a == nil || a.Resp == nil {
		return ""
	}
	return a.Resp.Header.Get(name)
}

// variable writes one; false ends the format (%{onerror} where all went well).
func (w *writer) variable(name string) bool {
	switch name {
	case "stderr":
		w.to = w.x.stderr
	case "stdout":
		w.to = w.x.stdout
	case "onerror":
		return w.x.stats.failure != nil
	case "json":
		w.put(w.json())
	case "header_json":
		w.put(w.headerJSON())
	default:
		v, ok := w.value(name)
		if !ok {
			fmt.Fprintf(w.x.stderr, "curl: unknown --write-out variable: '%s'\n", name)
			return true
		}
		w.put(fmt.Sprint(v))
	}
	return true
}

// seconds is a time as -w prints it.
type seconds6 time.Duration

func (s seconds6) String() string               { return fmt.Sprintf("%.6f", time.Duration(s).Seconds()) }
func (s seconds6) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// value reports a variable: an int, an int64, a seconds6 or a string.
func (w *writer) value(name string) (any, bool) {
	s := &w.x.stats
	if v, ok := s.times(name); ok {
		return v, true
	}
	if v, ok := s.sizes(name); ok {
		return v, true
	}
	a := s.answer
	switch name {
	case "http_code", "response_code":
		code := 0
		if a != nil && a.Resp != nil {
			code = a.Resp.StatusCode
		}
		return status3(code), true
	case "http_connect":
		return status3(0), true
	case "content_type":
		return w.Header("Content-Type"), true
	case "errormsg":
		if s.failure == nil {
			return "", true
		}
		return s.failure.Text, true
	case "exitcode":
		if s.failure == nil {
			return 0, true
		}
		return s.failure.Code, true
	case "filename_effective":
		if w.x.dest == nil || w.x.dest.toStdout() {
			return "", true
		}
		return w.x.dest.name, true
	case "http_version":
		if a != nil && a.Resp != nil {
			return strings.TrimPrefix(a.Resp.Proto, "HTTP/"), true
		}
		return "0", true
	case "method":
		return s.method, true
	case "redirect_url":
		return s.redirect, true
	case "referer":
		return w.x.s.referer, true
	case "scheme":
		scheme, _, _ := strings.Cut(s.effective, ":")
		return strings.ToUpper(scheme), true
	case "url":
		return s.url, true
	case "url_effective":
		return s.effective, true
	case "local_ip", "remote_ip", "ftp_entry_path", "certs":
		return "", true // the gate has the connection; its addresses say nothing of the origin
	}
	return nil, false
}

// status3 prints as three digits and is a number in JSON.
type status3 int

func (s status3) String() string { return fmt.Sprintf("%03d", int(s)) }

func (s *stats) times(name string) (seconds6, bool) {
	var connected, secured, started time.Duration
	if s.answer != nil {
		connected, secured, started = s.answer.Connected, s.answer.Secured, s.answer.Started
	}
	switch name {
	case "time_namelookup":
		return 0, true
	case "time_connect":
		return seconds6(connected), true
	case "time_appconnect":
		return seconds6(secured), true
	case "time_pretransfer":
		return seconds6(max(connected, secured)), true
	case "time_starttransfer":
		return seconds6(started), true
	case "time_redirect":
		return seconds6(s.redirTime), true
	case "time_total":
		return seconds6(s.total), true
	}
	return 0, false
}

func (s *stats) sizes(name string) (int64, bool) {
	per := func(n int64) int64 {
		if s.total <= 0 {
			return 0
		}
		return int64(float64(n) / s.total.Seconds())
	}
	switch name {
	case "size_download":
		return s.got, true
	case "size_upload":
		return s.sent, true
	case "size_header":
		return s.headers, true
	case "size_request":
		return s.requests, true
	case "speed_download":
		return per(s.got), true
	case "speed_upload":
		return per(s.sent), true
	case "num_redirects":
		return int64(s.redirects), true
	case "num_connects":
		return int64(s.calls), true
	case "num_headers":
		if s.answer == nil || s.answer.Resp == nil {
			return 0, true
		}
		n := 0
		for _, v := range s.answer.Resp.Header {
			n += len(v)
		}
		return int64(n), true
	case "urlnum":
		return int64(s.number), true
	case "ssl_verify_result", "proxy_ssl_verify_result", "num_certs", "local_port", "remote_port":
		return 0, true
	}
	return 0, false
}

// json is %{json}: every variable, in the order of their names as curl has it.
func (w *writer) json() string {
	names := []string{
		"certs", "content_type", "errormsg", "exitcode", "filename_effective", "ftp_entry_path", "http_code", "http_connect", "http_version",
		"local_ip", "local_port", "method", "num_certs", "num_connects", "num_headers", "num_redirects", "proxy_ssl_verify_result", "redirect_url",
		"referer", "remote_ip", "remote_port", "response_code", "scheme", "size_download", "size_header", "size_request", "size_upload",
		"speed_download", "speed_upload", "ssl_verify_result", "time_appconnect", "time_connect", "time_namelookup", "time_pretransfer",
		"time_redirect", "time_starttransfer", "time_total", "url", "url_effective", "urlnum",
	}
	var b strings.Builder
	b.WriteByte('{')
	for _, n := range names {
		v, _ := w.value(n)
		if s, ok := v.(string); ok && s == "" && n != "certs" {
			v = nil
		}
		text, err := json.Marshal(v)
		if err != nil {
			continue
		}
		fmt.Fprintf(&b, "%s:%s,", strconv.Quote(n), text)
	}
	b.WriteString(`"curl_version":"libcurl/7.88.1"}`)
	return b.String()
}

func (w *writer) headerJSON() string {
	a := w.x.stats.answer
	if a == nil || a.Resp == nil {
		return "{}"
	}
	var names []string
	for n := range a.Resp.Header {
		names = append(names, n)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteByte('{')
	for i, n := range names {
		text, err := json.Marshal(a.Resp.Header[http.CanonicalHeaderKey(n)])
		if err != nil {
			continue
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "%s:%s", strconv.Quote(strings.ToLower(n)), text)
	}
	return b.String() + "\n}"
}
