package tokens

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Bounds of a file. RFC 1929 gives a user name 255 bytes.
const (
	minTokenBytes = 16
	maxTokenBytes = 255
	maxNameBytes  = 63
	maxTokens     = 1 << 16
	maxFileBytes  = 32 << 20
	maxProblems   = 20
)

const hashPrefix = "sha256:"

// Parse reads a tokens file; name is what errors call it. An error lists every
// problem with its place (FILE:LINE), and no token.
func Parse(name string, data []byte) (*Set, error) {
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s: more than %d MiB: this is not a tokens file", name, maxFileBytes>>20)
	}
	s := newSet()
	var errs []error
	line := 0
	for text := range bytes.Lines(data) {
		line++
		pos := fmt.Sprintf("%s:%d", name, line)
		if err := s.parseLine(string(bytes.TrimRight(text, "\r\n")), pos); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", pos, err))
		}
		if len(s.refs) > maxTokens {
			errs = append(errs, fmt.Errorf("%s: more than %d tokens", pos, maxTokens))
		}
		if len(s.refs) > maxTokens || len(errs) >= maxProblems {
			break
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// parseLine reads one line. Its errors never repeat what may be a token.
func (s *Set) parseLine(text, pos string) error {
	text = strings.Trim(text, " \t")
	if text == "" || text[0] == '#' {
		return nil
	}
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(fields) != 2 {
		return fmt.Errorf("%d words: a line is NAME TOKEN or NAME sha256:HEX", len(fields))
	}
	if err := checkName(fields[0]); err != nil {
		return err
	}
	digest, err := digestOf(fields[1])
	if err != nil {
		return err
	}
	if earlier := s.add(digest, Ref{Name: fields[0], Pos: pos}); earlier != nil {
		return fmt.Errorf("the same token stands at %s, for %s: every token has one line", earlier.Pos, earlier.Name)
	}
	return nil
}

// checkName accepts what --policy accepts as NAME. A refused name is not
// repeated: somebody may have swapped the words.
func checkName(name string) error {
	if len(name) > maxNameBytes {
		return fmt.Errorf("the name has more than %d characters: a line is NAME TOKEN", maxNameBytes)
	}
	for i := range len(name) {
		c := name[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		inner := i > 0 && i < len(name)-1 && (c == '-' || c == '_' || c == '.')
		if !alnum && !inner {
			return errors.New("a policy's name has lower-case letters, digits, - . and _, and a letter or digit at both ends: a line is NAME TOKEN")
		}
	}
	return nil
}

// digestOf reports the SHA-256 of the token that word is or stands for.
func digestOf(word string) (digest [sha256.Size]byte, err error) {
	if hexed, ok := strings.CutPrefix(word, hashPrefix); ok {
		raw, err := hex.DecodeString(hexed)
		if err != nil || len(raw) != sha256.Size {
			return digest, fmt.Errorf("sha256: wants %d hexadecimal digits: printf %%s \"$TOKEN\" | sha256sum", 2*sha256.Size)
		}
		if digest = [sha256.Size]byte(raw); digest == sha256.Sum256(nil) {
			return digest, errors.New("that is the SHA-256 of nothing: was the variable empty?")
		}
		return digest, nil
	}
	if len(word) < minTokenBytes {
		return digest, fmt.Errorf("the token has %d characters, and could be guessed: at least %d are needed: openssl rand -hex 24", len(word), minTokenBytes)
	}
	if len(word) > maxTokenBytes {
		return digest, fmt.Errorf("the token has %d characters: SOCKS5 carries at most %d", len(word), maxTokenBytes)
	}
	for i := range len(word) {
		if c := word[i]; c <= ' ' || c > '~' || c == ':' {
			return digest, errors.New("a token is of printable ASCII without ':', which ends the user name in Basic credentials")
		}
	}
	return sha256.Sum256([]byte(word)), nil
}
