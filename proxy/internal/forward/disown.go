package forward

import (
	"net/http"
	"net/textproto"
	"strings"
)

// fromOrigin makes the head of an origin's response fit for the client: without
// the fields between two neighbours, and without words that are ours.
func fromOrigin(h http.Header) {
	stripHopByHop(h, false)
	disown(h)
}

// disown removes what only the gate may say: X-Egressd-Reason, and members of
// Proxy-Status that bear its name. What other intermediaries said stays.
//
// Threat: an origin answers as the gate does when it denies, so that a client or
// an agent believes that the policy stood in the way, and has it changed -> no
// response but the gate's own bears its name (RFC 9209 leaves it to each
// intermediary what it passes on). Left over: a body of the same words.
func disown(h http.Header) {
	delete(h, "X-Egressd-Reason")
	const field = "Proxy-Status"
	values, ok := h[field]
	if !ok {
		return
	}
	kept := make([]string, 0, len(values))
	for _, v := range values {
		if v = others(v); v != "" {
			kept = append(kept, v)
		}
	}
	if len(kept) == 0 {
		delete(h, field)
		return
	}
	h[field] = kept
}

// others is a list without the members that begin with our name, as a token or
// as a string, whatever its case. A comma inside a string divides nothing.
func others(list string) string {
	const name = "egressd"
	var kept []string
	for list != "" {
		end := memberEnd(list)
		member := textproto.TrimString(list[:end])
		list = strings.TrimPrefix(list[end:], ",")
		bare := strings.TrimLeft(member, " \t\"")
		if member == "" || len(bare) >= len(name) && strings.EqualFold(bare[:len(name)], name) {
			continue
		}
		kept = append(kept, member)
	}
	return strings.Join(kept, ", ")
}

// memberEnd is where the first member of a list ends.
func memberEnd(list string) int {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return i
		}
	}
	return len(list)
}
