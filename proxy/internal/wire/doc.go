// Package wire reads the first bytes that clients send: TLS ClientHellos, the
// heads of CONNECT requests and SOCKS requests. It works on bytes that are
// already there, keeps no connection, and never guesses: what can be read in
// two ways is an error.
package wire

import "errors"

// State says how far a message has come.
type State uint8

// The zero State asks for more bytes, so that an unset State never passes.
const (
	More  State = iota // a valid beginning: read more bytes and scan again
	Done               // a whole message
	Other              // not this protocol at all
	Bad                // this protocol, but not as its RFC has it
)

// ErrMalformed is wrapped by every error of this package.
var ErrMalformed = errors.New("malformed")
