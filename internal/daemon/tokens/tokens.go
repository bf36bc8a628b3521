// Package tokens maps proxy credentials (the user name of Basic or of SOCKS5) to
// the name of the policy that judges the client:
//
//	set, err := tokens.Load(path, os.ReadFile)
//	policy, ok := set.Lookup(token)
//
// A file holds one token a line:
//
//	# name   token, 16 to 255 printable characters
//	build    5f2b1c0e9d8a47663f21
//	review   sha256:HEX of the token, 64 digits
//
// A name may have several tokens, so that one can be replaced by another
// without a gap. A token has one name.
package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
)

// Set is an immutable table of tokens; a reload makes another. The nil Set
// knows no token. It is safe for concurrent use.
//
// Threat: a client guesses tokens and times the answers -> the lookup is of a keyed
// hash under a secret key, so the length of a comparison shows nothing about a
// token. Left over: an attacker who reads the daemon's memory finds the hashes and
// the key, but no token.
type Set struct {
	key    [sha256.Size]byte
	byHash map[[sha256.Size]byte]*entry
	refs   []Ref
}

// Ref is one line of a file: a name, and where it stands.
type Ref struct {
	Name string
	Pos  string // FILE:LINE
}

type entry struct {
	hash [sha256.Size]byte // keyed
	ref  Ref
}

// Lookup reports the name that token stands for. It takes the same time
// whatever the set holds, and allocates nothing.
func (s *Set) Lookup(token string) (name string, ok bool) {
	if s == nil || len(token) < minTokenBytes || len(token) > maxTokenBytes {
		return "", false
	}
	var buf [maxTokenBytes]byte
	n := copy(buf[:], token)
	h := s.keyed(sha256.Sum256(buf[:n]))
	e := s.byHash[h]
	if e == nil || subtle.ConstantTimeCompare(e.hash[:], h[:]) != 1 {
		return "", false
	}
	return e.ref.Name, true
}

// Refs lists the tokens' names in the order of the file, one for each token.
// The caller must not change the slice.
func (s *Set) Refs() []Ref {
	if s == nil {
		return nil
	}
	return s.refs
}

// newSet makes an empty set with a key of its own.
func newSet() *Set {
	s := &Set{byHash: make(map[[sha256.Size]byte]*entry)}
	_, _ = rand.Read(s.key[:]) // never fails: the Go runtime ends the program instead
	return s
}

// keyed hashes the SHA-256 of a token under the set's key. Both parts have a
// fixed length, so no input can be extended into another one.
func (s *Set) keyed(digest [sha256.Size]byte) [sha256.Size]byte {
	var in [2 * sha256.Size]byte
	copy(in[:], s.key[:])
	copy(in[sha256.Size:], digest[:])
	return sha256.Sum256(in[:])
}

// add books a token by its SHA-256. It reports the line that holds it already.
func (s *Set) add(digest [sha256.Size]byte, ref Ref) (earlier *Ref) {
	h := s.keyed(digest)
	if e := s.byHash[h]; e != nil {
		return &e.ref
	}
	s.byHash[h] = &entry{hash: h, ref: ref}
	s.refs = append(s.refs, ref)
	return nil
}
