// Package names knows the one canonical spelling of a DNS name: lower-case
// A-labels without the root dot.
//
//	names.Plain("api.example.com")                 // true: it is canonical as it stands
//	name, err := names.Canonical("Bücher.example") // xn--bcher-kva.example
package names

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/idna"
)

// Specification constants: RFC 1035 section 2.3.4, without the root dot.
const (
	MaxBytes      = 253 // of a name
	maxLabelBytes = 63
)

// Plain reports whether s is already a canonical name that needs no IDNA:
// lower-case letters, digits, hyphens and underscores in well-formed labels,
// none of them an A-label, the last one no number. It allocates nothing.
func Plain[T string | []byte](s T) bool {
	if len(s) > MaxBytes {
		return false
	}
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			if !nameByte(s[i]) {
				return false
			}
			continue
		}
		label := s[start:i]
		if labelProblem(label) != "" || len(label) >= 4 && isALabel(string(label[:4])) {
			return false
		}
		if i == len(s) {
			return 'a' <= label[0] && label[0] <= 'z' || !Numeric(string(label))
		}
		start = i + 1
	}
	return false // unreachable
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

func isALabel(label string) bool { return strings.HasPrefix(label, "xn--") }

// labelProblem says what is wrong with the shape of a lower-case ASCII label,
// or "".
func labelProblem[T string | []byte](label T) string {
	switch {
	case len(label) == 0:
		return "an empty label"
	case len(label) > maxLabelBytes:
		return "a label longer than 63 bytes"
	case label[0] == '-' || label[len(label)-1] == '-':
		return "a label that begins or ends with a hyphen"
	}
	return ""
}

// Numeric reports whether a last label makes some parsers read the whole
// host as an IPv4 address (WHATWG URL, "ends in a number checker").
func Numeric(label string) bool {
	digits := true
	for i := 0; i < len(label); i++ {
		digits = digits && '0' <= label[i] && label[i] <= '9'
	}
	if digits {
		return true
	}
	hex, ok := strings.CutPrefix(label, "0x")
	if !ok {
		return false
	}
	return strings.Trim(hex, "0123456789abcdef") == ""
}

// Canonical reads a name that is not yet canonical.
func Canonical(s string) (string, error) {
	// RFC 1034 section 3.1: one trailing dot is the root label, spelled out.
	name := strings.TrimSuffix(s, ".")
	ascii, err := toASCII(name)
	if err != nil {
		return "", fmt.Errorf("host %q is not a valid name: %w", s, err)
	}
	if len(ascii) > MaxBytes {
		return "", fmt.Errorf("host %q is longer than %d bytes", s, MaxBytes)
	}
	last := ""
	for label := range strings.SplitSeq(ascii, ".") {
		if problem := labelProblem(label); problem != "" {
			return "", fmt.Errorf("host %q has %s", s, problem)
		}
		for i := 0; i < len(label); i++ {
			if !nameByte(label[i]) {
				return "", fmt.Errorf("host %q has a byte (%q) that no name has", s, label[i])
			}
		}
		last = label
	}
	if Numeric(last) {
		return "", fmt.Errorf("host %q looks like an IPv4 address in an odd spelling", s)
	}
	return ascii, nil
}

// toASCII maps a name to lower-case A-labels. Only names that have something
// to map reach IDNA: plain ASCII labels are lowered byte by byte, so that
// underscores and "--" (both common in real names) survive.
func toASCII(name string) (string, error) {
	needsIDNA := false
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c < 0x21 || c == 0x7f:
			return "", fmt.Errorf("a control byte or space (%q)", c)
		case c == '@':
			return "", errors.New("userinfo is not accepted")
		case c == '%':
			return "", errors.New("percent-encoding and zones are not accepted")
		case c >= 0x80:
			needsIDNA = true
		}
	}
	name = Lower(name)
	if !needsIDNA && !strings.HasPrefix(name, "xn--") && !strings.Contains(name, ".xn--") {
		return name, nil
	}
	return strictIDNA(name)
}

// strictIDNA maps by UTS 46 (non-transitional, with the bidi and joiner rules)
// and then insists that the result maps to itself and that every A-label in it
// stands for a label that needed one.
func strictIDNA(name string) (string, error) {
	profile := idna.New(
		idna.MapForLookup(),
		idna.BidiRule(),
		idna.CheckJoiners(true),
		idna.CheckHyphens(false),
		idna.StrictDomainName(false),
		idna.Transitional(false),
	)
	ascii, err := profile.ToASCII(name)
	if err != nil {
		return "", err
	}
	again, err := profile.ToASCII(ascii)
	if err != nil || again != ascii {
		return "", errors.New("it has no single spelling")
	}
	for label := range strings.SplitSeq(ascii, ".") {
		if !isALabel(label) {
			continue
		}
		unicode, err := profile.ToUnicode(label)
		if err != nil {
			return "", err
		}
		if isASCII(unicode) {
			return "", fmt.Errorf("label %q is Punycode for a plain ASCII name", label)
		}
	}
	return ascii, nil
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// Lower lowers A to Z and nothing else: U+212A (the Kelvin sign) and its
// like are IDNA's business, never a case fold's.
func Lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
