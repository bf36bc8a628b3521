package denial

import (
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"

	"egressd/policy"
)

// maxPhraseBytes bounds the reason phrase and the words of an SSH disconnect:
// OpenSSH shows 400 bytes of one.
const maxPhraseBytes = 400

// Phrase is the reason phrase of the status line (RFC 9112 section 4), and one
// line for protocols that carry no more: many clients print it and swallow the
// body. It is printable ASCII and at most 400 bytes long. A rule that does not
// fit is left out: half a rule is another rule.
//
// Threat: a client has the gate ask for a name or a path that holds a line end,
// and so writes header fields or a second response -> every byte that is not
// printable ASCII is replaced. Left over: words of the client's choice, of the
// letters a host name and a path are made of.
func (d Response) Phrase() string {
	head := "egressd: "
	switch code := d.code(); {
	case code == http.StatusForbidden:
		head = "Blocked by egressd: "
	case code != http.StatusInternalServerError:
		head = http.StatusText(code) + ": egressd: "
	}
	if !d.Request.Host.IsZero() {
		head += strings.TrimPrefix(d.whither(), " to ") + ": "
	}
	phrase := printable(head+d.why(), maxPhraseBytes)
	if ask := d.ask(); len(phrase)+len(ask) <= maxPhraseBytes && printable(ask, maxPhraseBytes) == ask {
		phrase += ask
	}
	return phrase[:min(len(phrase), maxPhraseBytes)]
}

// ask says who can allow it, and by which rule; "": no rule can.
func (d Response) ask() string {
	rule := d.Decision.Suggest(d.Request)
	switch {
	case rule == "" || d.Decision.Reason == policy.ReasonNotTLS || d.Decision.Reason == policy.ReasonNotHTTP:
		return ""
	case d.Policy == "":
		return "; ask the user for --allow " + shellWord(rule)
	}
	return "; ask whoever runs egressd to allow " + shellWord(rule) + " in its policy " + strconv.Quote(d.Policy)
}

// SSH is the answer to a client that has sent its identification (RFC 4253): an
// identification of ours, and a disconnect message with the phrase, which clients
// print. Nothing is encrypted before the key exchange.
func (d Response) SSH() []byte {
	const (
		disconnect    = 1 // SSH_MSG_DISCONNECT
		notAllowed    = 1 // SSH_DISCONNECT_HOST_NOT_ALLOWED_TO_CONNECT
		block         = 8 // without a cipher
		leastPadding  = 4
		lengthsBefore = 5 // packet_length, padding_length
	)
	words := d.Phrase()
	payload := binary.BigEndian.AppendUint32([]byte{disconnect}, notAllowed)
	payload = binary.BigEndian.AppendUint32(payload, uint32(len(words)))
	payload = append(payload, words...)
	payload = binary.BigEndian.AppendUint32(payload, 0) // no language
	padding := block - (lengthsBefore+len(payload))%block
	if padding < leastPadding {
		padding += block
	}
	b := []byte("SSH-2.0-egressd\r\n")
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(payload)+padding))
	b = append(b, byte(padding))
	b = append(b, payload...)
	return append(b, make([]byte, padding)...)
}
