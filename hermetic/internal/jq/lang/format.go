package lang

import (
	"encoding/base32"
	"encoding/base64"
	"fmt"
	"strings"

	"egressd/hermetic/internal/jq/value"
)

// format is @text, @json and the like.
func format(as string, v any) (string, error) {
	switch as {
	case "@text":
		return Tostring(v), nil
	case "@json":
		return value.Tojson(v), nil
	case "@csv":
		return row(v, "csv", ",", func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` })
	case "@tsv":
		return row(v, "tsv", "\t", strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`).Replace)
	case "@html":
		return strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", "'", "&#39;", `"`, "&quot;").Replace(Tostring(v)), nil
	case "@uri":
		return uri(Tostring(v)), nil
	case "@urid":
		return unescapeURI(Tostring(v)), nil
	case "@sh":
		return shellWords(v)
	case "@base64":
		return base64.StdEncoding.EncodeToString([]byte(Tostring(v))), nil
	case "@base64d":
		return decode64(v)
	case "@base32":
		return base32.StdEncoding.EncodeToString([]byte(Tostring(v))), nil
	case "@base32d":
		b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(Tostring(v), "="))
		if err != nil {
			return "", Failf("%s is not valid base32 data", described(v))
		}
		return strings.ToValidUTF8(string(b), "\ufffd"), nil
	}
	return "", Failf("%s is not a valid format", strings.TrimPrefix(as, "@"))
}

func row(v any, what, sep string, quote func(string) string) (string, error) {
	a, ok := v.([]any)
	if !ok {
		return "", Failf("%s cannot be %s-formatted, only an array can be", described(v), what)
	}
	parts := make([]string, len(a))
	for i, e := range a {
		switch e := e.(type) {
		case nil:
		case string:
			parts[i] = quote(e)
		case []any, *value.Object:
			return "", Failf("%s is not valid in a csv row", described(e))
		default:
			parts[i] = value.Tojson(e)
		}
	}
	return strings.Join(parts, sep), nil
}

func uri(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func unescapeURI(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		var c byte
		if s[i] == '%' && i+2 < len(s) {
			if n, err := fmt.Sscanf(s[i+1:i+3], "%02x", &c); n == 1 && err == nil {
				b = append(b, c)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return strings.ToValidUTF8(string(b), "\ufffd")
}

func shellWords(v any) (string, error) {
	a, ok := v.([]any)
	if !ok {
		a = []any{v}
	}
	parts := make([]string, len(a))
	for i, e := range a {
		switch e := e.(type) {
		case []any, *value.Object:
			return "", Failf("%s can not be escaped for shell", described(e))
		case string:
			parts[i] = "'" + strings.ReplaceAll(e, "'", `'\''`) + "'"
		default:
			parts[i] = value.Tojson(e)
		}
	}
	return strings.Join(parts, " "), nil
}

func decode64(v any) (string, error) {
	s := strings.TrimRight(Tostring(v), "=")
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil && len(s)%4 == 1 && len(s) > 1 {
		b, err = base64.RawStdEncoding.DecodeString(s[:len(s)-1])
	}
	if err != nil || len(s) == 1 {
		return "", Failf("%s is not valid base64 data", described(v))
	}
	return strings.ToValidUTF8(string(b), "\ufffd"), nil
}
