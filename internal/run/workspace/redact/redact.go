// Package redact takes secrets out of bytes that leave, in the forms in which a program
// may have written them.
//
//	r := redact.New([]redact.Secret{{Name: "TOKEN", Value: token}})
//	out, err := r.Redact(data) // each form of it is now [REDACTED:TOKEN]
//
// It works on bytes, so that what is no text stays as it is. It knows the plain value,
// and these forms of it:
//
//   - escaped, each byte in a way of its own: percent (URL), JSON and C escapes, octal,
//     HTML entities, quoted-printable, quotes of a shell
//   - base64 and base64url at each of three offsets, base32 at each of five, hex in
//     either case with or without separators, lists of numbers
//   - base64 of base64, of hex and of UTF-16; UTF-16; back to front
//   - broken into lines, and each long line of a value that has lines
//   - within gzip, zlib, zip and bzip2, also within each other
//
// Left over: encryption, other compression (xz, zstd), part of a value, and encodings
// that a program makes up. A program that wants to tell a secret can: what keeps a secret
// from leaving is that the program never has it (the secrets of a policy).
package redact

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
)

// Secret is a value that may not leave. An empty value is nowhere.
type Secret struct{ Name, Value string }

// ErrTooLarge is content that is too large to be searched once it is unpacked.
var ErrTooLarge = errors.New("its compressed contents are too large to be searched for secrets")

// maxUnpacked bounds what is unpacked of one input, in bytes, and maxDepth how deep
// archives may lie in each other.
const (
	maxUnpacked = 256 << 20
	maxDepth    = 4
)

// Redactor finds secrets. Safe for concurrent use.
type Redactor struct {
	secrets []Secret
	limit   int         // bytes that are unpacked of one input
	starts  [256][]form // by the byte that a form can begin with
}

// form is one way in which a secret is written.
type form struct {
	secret int // index
	match  func(data []byte, at int) (from, to int)
}

// New prepares a search for secrets.
func New(secrets []Secret) *Redactor {
	r := &Redactor{secrets: slices.Clone(secrets), limit: maxUnpacked}
	for i, s := range r.secrets {
		if s.Value != "" {
			r.add(i, s.Value)
		}
	}
	return r
}

// span is where a secret is: data[from:to].
type span struct{ from, to, secret int }

// Redact reports data with every secret replaced by [REDACTED:NAME], or data itself if
// there is none. An archive that holds one is replaced as a whole. The error is
// ErrTooLarge; nothing of data may leave then.
func (r *Redactor) Redact(data []byte) ([]byte, error) {
	left := r.limit
	spans, err := r.find(data, 0, &left)
	if err != nil || len(spans) == 0 {
		return data, err
	}
	out := make([]byte, 0, len(data))
	done := 0
	for _, s := range spans {
		out = append(out, data[done:s.from]...)
		out = append(out, "[REDACTED:"+r.secrets[s.secret].Name+"]"...)
		done = s.to
	}
	return append(out, data[done:]...), nil
}

// Found reports the name of a secret that is in data, or "".
func (r *Redactor) Found(data []byte) (string, error) {
	left := r.limit
	spans, err := r.find(data, 0, &left)
	if err != nil || len(spans) == 0 {
		return "", err
	}
	return r.secrets[spans[0].secret].Name, nil
}

// find lists where secrets are, in order and apart from each other. Of secrets that
// overlap all bytes go, under the name of the longest: one may be part of another.
func (r *Redactor) find(data []byte, depth int, left *int) ([]span, error) {
	var all []span
	for i, b := range data {
		for _, f := range r.starts[b] {
			if from, to := f.match(data, i); to > 0 {
				all = append(all, span{from, to, f.secret})
			}
		}
	}
	if depth < maxDepth && r.any() {
		packed, err := r.packed(data, depth, left)
		if err != nil {
			return nil, err
		}
		all = append(all, packed...)
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var out []span
	longest := 0
	for _, s := range all {
		n := len(out)
		if n == 0 || s.from >= out[n-1].to {
			out, longest = append(out, s), s.to-s.from
			continue
		}
		if s.to-s.from > longest {
			out[n-1].secret, longest = s.secret, s.to-s.from
		}
		out[n-1].to = max(out[n-1].to, s.to)
	}
	return out, nil
}

func (r *Redactor) any() bool {
	return slices.ContainsFunc(r.secrets, func(s Secret) bool { return s.Value != "" })
}

// packed lists the archives in data that hold a secret.
func (r *Redactor) packed(data []byte, depth int, left *int) (out []span, err error) {
	for at := 0; at < len(data); {
		next := bytes.IndexAny(data[at:], "\x1f\x78PB")
		if next < 0 {
			return out, nil
		}
		at += next
		content, size := unpack(data[at:], *left)
		if size == 0 {
			at++
			continue
		}
		if *left -= len(content); *left <= 0 {
			return nil, ErrTooLarge
		}
		inner, err := r.find(content, depth+1, left)
		if err != nil {
			return nil, err
		}
		if len(inner) == 0 {
			at++
			continue
		}
		out = append(out, span{at, at + size, inner[0].secret})
		at += size
	}
	return out, nil
}
