package event

import (
	"egressd/policy"
	"egressd/policy/files"
)

// Decision is whether a flow may go on. The zero Decision is Blocked.
type Decision uint8

// The decisions.
const (
	Blocked Decision = iota
	Allowed
)

// String reports "allowed" or "blocked", the words of the events.
func (d Decision) String() string {
	if d == Allowed {
		return "allowed"
	}
	return "blocked"
}

// Verdict is what was decided, and why. The zero Verdict is blocked, because
// there is no policy.
type Verdict struct {
	Decision Decision
	Reason   policy.Reason
	Rule     *policy.Rule // that decided; nil when none did. Of a decoded event it has Text and Pos alone
	Audit    bool         // allowed only because the policy audits
}

// Judged reports the verdict that d is.
func Judged(d policy.Decision) Verdict {
	v := Verdict{Reason: d.Reason, Rule: d.Rule, Audit: d.Audit}
	if d.Allowed() {
		v.Decision = Allowed
	}
	return v
}

// verdict is the same for every packet.
func (*Packet) verdict() Verdict { return Verdict{Reason: policy.ReasonProtocol} }

// Door is the way in. The zero Door is not known.
type Door uint8

// The doors.
const (
	DoorConnect     Door = iota + 1 // HTTP CONNECT
	DoorHTTP                        // absolute-form HTTP
	DoorSOCKS5                      //
	DoorSOCKS4                      // SOCKS4 and 4a
	DoorTransparent                 // captured TCP
	DoorIntercept                   // a request inside intercepted TLS
	DoorDNS                         // every Query
	DoorKernel                      // every Packet
)

var doorWords = [...]string{
	DoorConnect: "connect", DoorHTTP: "http", DoorSOCKS5: "socks5", DoorSOCKS4: "socks4",
	DoorTransparent: "transparent", DoorIntercept: "intercept", DoorDNS: "dns", DoorKernel: "kernel",
}

// String reports the word of the events; "" for a Door that is none.
func (d Door) String() string { return wordOf(doorWords[:], d) }

// RCode is how a DNS question was answered. The zero RCode is no answer.
type RCode uint8

// The answers that egressd gives.
const (
	NoAnswer RCode = iota // the question was dropped
	NoError
	FormErr
	ServFail
	NXDomain
	NotImp
	Refused
	BadVers
)

var rcodeWords = [...]string{
	NoError: "NOERROR", FormErr: "FORMERR", ServFail: "SERVFAIL", NXDomain: "NXDOMAIN",
	NotImp: "NOTIMP", Refused: "REFUSED", BadVers: "BADVERS",
}

// String reports the mnemonic of RFC 6895; "" for NoAnswer.
func (r RCode) String() string { return wordOf(rcodeWords[:], r) }

// Change is what a command did to a file. The zero Change is not known.
type Change uint8

// The changes.
const (
	Added Change = iota + 1
	Modified
	Deleted
)

var changeWords = [...]string{Added: "added", Modified: "modified", Deleted: "deleted"}

// String reports the word of the events; "" for a Change that is none.
func (c Change) String() string { return wordOf(changeWords[:], c) }

// wantedWords are what a program wanted to do with a file, by the Access that it
// needs. Hidden has none.
var wantedWords = [...]string{files.ReadOnly: "read", files.ReadWrite: "write"}

func wordOf[T ~uint8](words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return ""
}
