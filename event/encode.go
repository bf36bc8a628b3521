package event

import (
	"strconv"
	"unicode/utf8"
)

// maxStringBytes bounds every string of an event before it is escaped. What is
// cut off is counted at the end of the string. Implementation constant: a host
// has at most 253 bytes; a longer path or error says nothing more.
const maxStringBytes = 2048

// timeLayout is RFC 3339 with microseconds and always the same width, so that
// lines sort as text.
const timeLayout = "2006-01-02T15:04:05.000000Z07:00"

// appendLine appends e as one line of JSON, ending in a newline. The order of
// the fields is that of Event and never changes.
//
// Threat: a client puts line breaks, terminal escapes, invalid UTF-8 or
// separators that only some readers honour into a host, a path or an SNI, to
// forge or hide a line -> everything outside printable ASCII is escaped, so a
// line holds no byte that any reader takes for a line's end. Left over: whoever
// decodes a line and prints the string raw must escape it again.
func appendLine(b []byte, e *Event) []byte {
	b = append(b, `{"time":"`...)
	b = e.Time.UTC().AppendFormat(b, timeLayout)
	b = append(b, `","seq":`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, `,"type":`...)
	b = appendString(b, string(e.Type))
	b = appendStringField(b, "session", e.Session)
	b = appendStringField(b, "isolation", e.Isolation)
	b = appendUintField(b, "flow", e.Flow)
	b = appendVerdict(b, e)
	b = appendTarget(b, e)
	b = appendStringField(b, "qtype", e.QType)
	b = appendStringField(b, "rcode", e.RCode)
	b = appendIntField(b, "bytes_out", e.BytesOut)
	b = appendIntField(b, "bytes_in", e.BytesIn)
	b = appendIntField(b, "duration_ms", e.DurationMS)
	b = appendStringField(b, "error", e.Error)
	b = appendStringField(b, "argv_hash", e.ArgvHash)
	if e.ExitCode != nil {
		b = append(b, `,"exit_code":`...)
		b = strconv.AppendInt(b, int64(*e.ExitCode), 10)
	}
	b = appendStringField(b, "name", e.Name)
	b = appendIntField(b, "added", e.Added)
	b = appendIntField(b, "removed", e.Removed)
	b = appendStringField(b, "version", e.Version)
	b = appendStringField(b, "change", e.Change)
	return append(b, '}', '\n')
}

func appendVerdict(b []byte, e *Event) []byte {
	b = appendStringField(b, "door", string(e.Door))
	b = appendStringField(b, "decision", e.Decision)
	b = appendStringField(b, "reason", e.Reason)
	b = appendStringField(b, "rule", e.Rule)
	b = appendStringField(b, "rule_pos", e.RulePos)
	if e.Audit {
		b = append(b, `,"audit":true`...)
	}
	return appendStringField(b, "policy", e.Policy)
}

func appendTarget(b []byte, e *Event) []byte {
	b = appendStringField(b, "host", e.Host)
	b = appendUintField(b, "port", uint64(e.Port))
	b = appendStringField(b, "addr", e.Addr)
	b = appendStringField(b, "server", e.Server)
	b = appendStringField(b, "client", e.Client)
	b = appendStringField(b, "method", e.Method)
	b = appendStringField(b, "path", e.Path)
	b = appendStringField(b, "proto", e.Proto)
	return appendIntField(b, "count", e.Count)
}

// appendKey takes only the names above: nothing in them needs escaping.
func appendKey(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

func appendStringField(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(appendKey(b, key), s)
}

func appendUintField(b []byte, key string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendUint(appendKey(b, key), v, 10)
}

func appendIntField(b []byte, key string, v int64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendInt(appendKey(b, key), v, 10)
}

// plain marks the bytes that stand for themselves: printable ASCII but for the
// quote and the backslash (JSON) and <, > and & (pages that show events).
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		t[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return t
}()

func appendString(b []byte, s string) []byte {
	cut := 0
	if len(s) > maxStringBytes {
		end := maxStringBytes
		for end > maxStringBytes-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		cut, s = len(s)-end, s[:end]
	}
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf && plain[c] {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		r, n := utf8.DecodeRuneInString(s[i:]) // U+FFFD for a byte that is not UTF-8
		b = appendRune(b, r)
		i += n
		start = i
	}
	b = append(b, s[start:]...)
	if cut > 0 {
		b = append(b, "...(+"...)
		b = strconv.AppendInt(b, int64(cut), 10)
		b = append(b, " bytes)"...)
	}
	return append(b, '"')
}

func appendRune(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	if r > 0xffff { // RFC 8259 section 7: a surrogate pair
		r -= 0x10000
		b = appendUnit(b, 0xd800+(r>>10))
		return appendUnit(b, 0xdc00+(r&0x3ff))
	}
	return appendUnit(b, r)
}

func appendUnit(b []byte, u rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}
