package lists

import (
	"bytes"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// walker goes through the lines of a text. rule is called for each rule and ends
// the walk with false; unknown for what is no rule.
type walker struct {
	data    []byte
	format  Format
	rule    func(span) bool
	unknown func(s span, what, fix string)

	soa bool // inside the parentheses of an SOA record
}

// from walks from m, the beginning of a line.
func (w *walker) from(m mark) {
	line := int(m.line)
	for bol := int(m.off); bol < len(w.data); line++ {
		eol, next := len(w.data), len(w.data)
		if i := bytes.IndexByte(w.data[bol:], '\n'); i >= 0 {
			eol, next = bol+i, bol+i+1
		}
		s := span{start: bol, end: eol, bol: bol, line: line, first: true}
		s.trim(w.data)
		bol = next
		switch {
		case s.end-s.start > maxLineBytes:
			s.end = s.start
			w.unknown(s, "the line is longer than 8192 bytes", "write one rule a line")
		case s.start < s.end:
			if !w.one(s) {
				return
			}
		}
	}
}

// trim takes white space off both ends.
func (s *span) trim(data []byte) {
	for s.start < s.end && blank(data[s.start]) {
		s.start++
	}
	for s.start < s.end && blank(data[s.end-1]) {
		s.end--
	}
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// cut ends s before the first of these bytes.
func (s *span) cut(data []byte, c byte) {
	if i := bytes.IndexByte(data[s.start:s.end], c); i >= 0 {
		s.end = s.start + i
		s.trim(data)
	}
}

// one reads one line that is not blank. It reports false to end the walk.
func (w *walker) one(s span) bool {
	switch w.format {
	case Hosts:
		return w.hosts(s)
	case Adblock:
		return w.adblock(s)
	case RPZ:
		return w.rpz(s)
	case Auto, Rules:
	}
	s.cut(w.data, '#')
	return s.start == s.end || w.rule(s)
}

// field takes the first word off s.
func (s *span) field(data []byte) span {
	f := *s
	for f.end = f.start; f.end < s.end && !blank(data[f.end]); {
		f.end++
	}
	s.start = f.end
	s.trim(data)
	return f
}

func (w *walker) text(s span) string { return string(w.data[s.start:s.end]) }

// Names of the machine itself, which hosts files begin with. They are no rules.
var ownNames = []string{
	"localhost", "localhost.localdomain", "localhost4", "localhost6", "localhost4.localdomain4", "localhost6.localdomain6", "local",
	"broadcasthost", "ip6-localhost", "ip6-loopback", "ip6-localnet", "ip6-mcastprefix", "ip6-allnodes", "ip6-allrouters", "ip6-allhosts", "0.0.0.0",
}

// hosts reads "ADDRESS NAME...". The address is one that leads nowhere.
func (w *walker) hosts(s span) bool {
	s.cut(w.data, '#')
	if s.start == s.end {
		return true
	}
	addr := s.field(w.data)
	nowhere := leadsNowhere(w.text(addr))
	if s.start == s.end {
		w.unknown(addr, "the line has no name after its address", "write 0.0.0.0 ads.example.com, or name the format in the policy: format: rules")
		return true
	}
	for first := true; s.start < s.end; {
		name := s.field(w.data)
		switch text := w.data[name.start:name.end]; {
		case slices.Contains(ownNames, string(text)):
			continue
		case !nowhere:
			w.unknown(addr, "the address "+quote(w.text(addr))+" leads somewhere", "write 0.0.0.0 before a name that is denied")
			return true
		case bytes.ContainsAny(text, ":*/"):
			w.unknown(name, quote(string(text))+" is no host name", "write one name after the address: 0.0.0.0 ads.example.com")
			continue
		}
		name.first, first = first, false
		if !w.rule(name) {
			return false
		}
	}
	return true
}

func isAddr(b []byte) bool {
	_, err := netip.ParseAddr(string(b))
	return err == nil
}

// leadsNowhere reports whether hosts files deny a name with this address.
func leadsNowhere(text string) bool {
	switch text {
	case "0.0.0.0", "127.0.0.1", "::", "::1", "0":
		return true
	}
	return false
}

// Options of an Adblock rule that leave it as wide as it is without them.
var wideOptions = []string{"all", "document", "important"}

// adblock reads "||name^". Everything else such lists hold (parts of pages,
// exceptions, addresses) is no rule about hosts.
func (w *walker) adblock(s span) bool {
	row := w.data[s.start:s.end]
	switch {
	case row[0] == '!' || row[0] == '[' && row[len(row)-1] == ']':
		return true
	case row[0] == '#' && (len(row) == 1 || blank(row[1])):
		return true
	case bytes.HasPrefix(row, []byte("@@")):
		w.unknown(s, "an exception (@@) cannot be part of a deny list", "take the line out, and the rule that it lifts")
		return true
	case !bytes.HasPrefix(row, []byte("||")):
		w.unknown(s, quote(string(row))+" is no rule about a whole domain", "write ||example.com^, or have such lines left out: unknown: skip")
		return true
	}
	name := s
	name.start += 2
	name.cut(w.data, '^')
	rest := bytes.TrimPrefix(w.data[name.end:s.end], []byte("^"))
	options, ok := bytes.CutPrefix(rest, []byte("$"))
	known := len(rest) == 0 && name.end < s.end || ok
	for _, o := range strings.Split(string(options), ",") {
		known = known && (!ok || slices.Contains(wideOptions, o))
	}
	if !known || bytes.ContainsAny(w.data[name.start:name.end], ":/$ ") {
		w.unknown(s, quote(string(row))+" covers less than a whole domain", "write ||example.com^, or have such lines left out: unknown: skip")
		return true
	}
	return w.rule(name)
}

// Types of records in a zone.
var recordTypes = []string{"CNAME", "A", "AAAA", "SOA", "NS", "TXT"}

// recordType reports which of recordTypes these words of a record name after its
// owner, and -1 if none.
func recordType(words [][]byte) int {
	for i, word := range words {
		up := strings.ToUpper(string(word))
		if t := slices.Index(recordTypes, up); t >= 0 {
			return t
		}
		if i > 1 || up != "IN" && strings.Trim(up, "0123456789SMHDW") != "" {
			return -1
		}
	}
	return -1
}

// rpz reads "name CNAME ." of a response policy zone, and skips what every zone
// has (SOA, NS, TXT, $TTL).
func (w *walker) rpz(s span) bool {
	indented := s.start > s.bol
	s.cut(w.data, ';')
	row := w.text(s)
	switch {
	case row == "":
		return true
	case w.soa:
		w.soa = !strings.Contains(row, ")")
		return true
	case strings.HasPrefix(row, "$TTL"):
		return true
	}
	all := s
	owner := span{start: s.start, end: s.start}
	if !indented {
		owner = s.field(w.data)
	}
	words := bytes.Fields(w.data[s.start:s.end])
	kind := recordType(words)
	what := ""
	if kind >= 0 {
		what = recordTypes[kind]
	}
	switch what {
	case "SOA":
		w.soa = strings.Contains(row, "(") && !strings.Contains(row, ")")
		return true
	case "NS", "TXT":
		return true
	}
	name := w.data[owner.start:owner.end]
	target := ""
	if len(words) > 0 {
		target = string(words[len(words)-1])
	}
	switch {
	case what == "CNAME" && (target == "." || target == "*." || target == "rpz-drop."):
	case (what == "A" || what == "AAAA") && leadsNowhere(target):
		if string(name) == "localhost" || string(name) == "@" {
			return true
		}
	case what == "CNAME" && target == "rpz-passthru.":
		w.unknown(all, "an exception (rpz-passthru.) cannot be part of a deny list", "take the line out, and the rule that it lifts")
		return true
	default:
		w.unknown(all, quote(row)+" denies no name", "write: ads.example.com CNAME .")
		return true
	}
	if len(name) == 0 || name[0] == '.' || name[len(name)-1] == '.' || bytes.ContainsAny(name, ":/@") || bytes.Contains(name, []byte(".rpz-")) {
		w.unknown(all, quote(row)+" is not about one name of the zone", "write: ads.example.com CNAME .")
		return true
	}
	owner.bol, owner.line, owner.first = all.bol, all.line, true
	return w.rule(owner)
}

// quote shows a text of any length and content in a message.
func quote(s string) string {
	if len(s) > 100 {
		s = s[:100] + "..."
	}
	return strconv.Quote(s)
}
