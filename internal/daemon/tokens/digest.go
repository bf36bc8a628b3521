package tokens

import "crypto/sha256"

// LookupDigest is Lookup for somebody who kept the SHA-256 of a token and not
// the token, to find out whether it still stands for what it stood for.
func (s *Set) LookupDigest(digest [sha256.Size]byte) (name string, ok bool) {
	if s == nil {
		return "", false
	}
	e := s.byHash[s.keyed(digest)]
	if e == nil {
		return "", false
	}
	return e.ref.Name, true
}
