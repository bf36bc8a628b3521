package summary

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/policy"
)

// Bounds of the text.
const (
	maxAllowedLines = 12
	maxBlockedLines = 20
	// of what is only mentioned
	maxNeedlessLines = 5
	maxSuggestions   = 40
	maxAddresses     = 10 // in a line of suggestions
)

// Style is how a summary looks. The zero Style is that of a file.
type Style struct {
	cli.Paint
	Width int  // of the terminal, in columns; 0: it is none
	JSON  bool // one line of JSON, a Report, in any case

	// Found are policy files that counted without being named, each with how far.
	Found []string
}

// Write prints the summary on w: nothing when the program used no network and was
// refused no file, one line when nothing was blocked and little was allowed. Every name is printed
// so that a terminal shows it and does nothing else.
func (c *Collector) Write(w io.Writer, s Style) error {
	if s.JSON {
		r := c.Report()
		r.PolicyFiles = append(r.PolicyFiles, s.Found...)
		return json.NewEncoder(w).Encode(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &page{Style: s}
	c.writeNetwork(b)
	writeFiles(&b.Buffer, c.refusedFiles())
	if b.Len() == 0 {
		return nil
	}
	if len(s.Found) > 0 {
		fmt.Fprintf(b, "Rules came from files that nobody named, too (--no-project goes without): %s\n", cli.Safe(strings.Join(s.Found, ", ")))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// page is a summary on its way.
type page struct {
	bytes.Buffer
	Style
}

// account is what a run did, by what there is to say of it.
type account struct {
	allowed, audited []*total
	blocked          []*total
	needless         []*total // blocked, and nobody misses it
	failed           []*total // allowed, and not delivered by the network
	closed           []*total // by the client, before it said anything
}

func (c *Collector) writeNetwork(b *page) {
	a := c.account()
	if len(a.allowed)+len(a.blocked)+len(a.needless)+len(a.failed)+len(a.closed)+len(a.audited)+c.overflow+c.unlisted == 0 {
		return
	}
	fmt.Fprintf(b, "launch: %s\n", a.headline())
	folded := fold(a.blocked)
	width := max(widest(a.allowed, maxAllowedLines), widest(a.failed, maxBlockedLines), widest(folded, maxBlockedLines), widest(a.needless, maxNeedlessLines), widest(a.closed, maxNeedlessLines))
	b.table(b.Good("allowed"), a.allowed, maxAllowedLines, width)
	b.table(b.Warn("failed "), a.failed, maxBlockedLines, width)
	b.table(b.Faint("closed "), a.closed, maxNeedlessLines, width)
	b.table(b.Bad("blocked"), folded, maxBlockedLines, width)
	b.table(b.Faint("blocked"), a.needless, maxNeedlessLines, width)
	if c.unlisted > 0 {
		fmt.Fprintf(b, "  %s  and %s (UDP, ICMP, ...) that came too fast to list\n", b.Bad("blocked"), plural(c.unlisted, "packet"))
	}
	if c.overflow > 0 {
		fmt.Fprintf(b, "  (%d events more are in the event log only)\n", c.overflow)
	}
	adviseUpstream(b, a.failed)
	b.advise("To allow what was blocked, add:", a.blocked)
	if slices.ContainsFunc(a.blocked, func(t *total) bool { return t.reason == policy.ReasonCeiling }) {
		b.WriteString("What the daemon's policy does not allow only the operator of egressd can allow, in that policy.\n")
	}
	if len(a.audited) > 0 {
		b.table(b.Warn("audited"), a.audited, maxBlockedLines, widest(a.audited, maxBlockedLines))
		b.advise("Audit mode let those through. To allow them without --audit, add:", a.audited)
	}
}

// headline counts what there is.
func (a *account) headline() string {
	var parts []string
	if n := len(a.allowed); n > 0 || len(a.failed)+len(a.closed) == 0 {
		parts = append(parts, plural(n, "destination")+" allowed")
	}
	parts = append(parts, nothing(len(a.blocked)+len(a.needless)))
	if n := len(a.failed); n > 0 {
		parts = append(parts, strconv.Itoa(n)+" failed")
	}
	if n := len(a.closed); n > 0 {
		parts = append(parts, strconv.Itoa(n)+" closed by the client")
	}
	return strings.Join(parts, ", ")
}

// account sorts what happened: what the policy blocked, what it allowed but the
// network did not deliver, what the client gave up by itself.
func (c *Collector) account() *account {
	a := &account{allowed: ordered(c.allowed), audited: withoutQuestions(ordered(c.audited))}
	for _, t := range withoutQuestions(ordered(c.blocked)) {
		switch {
		case t.reason == policy.ReasonClientClosed:
			a.closed = append(a.closed, t)
		case t.reason.Class() == policy.ClassUpstream || t.reason.Class() == policy.ClassTimeout:
			a.failed = append(a.failed, t)
		case t.listable() && needless(t.host.Name()) != "":
			a.needless = append(a.needless, t)
		default:
			a.blocked = append(a.blocked, t)
		}
	}
	return a
}

// listable reports whether no rule speaks of the host, which one could.
func (t *total) listable() bool {
	return t.reason == policy.ReasonHostNotListed || t.reason == policy.ReasonPortNotListed
}

// withoutQuestions leaves the names out that were asked of DNS where a
// connection to the same name says more.
func withoutQuestions(all []*total) []*total {
	connected := make(map[policy.Host]bool)
	for _, t := range all {
		if t.port != 0 && !t.host.IsZero() {
			connected[t.host] = true
		}
	}
	return slices.DeleteFunc(all, func(t *total) bool { return t.port == 0 && t.proto == "" && connected[t.host] })
}

func ordered(table map[key]*total) []*total {
	list := make([]*total, 0, len(table))
	for _, t := range table {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *total) int { return cmp.Compare(a.order, b.order) })
	return list
}

// widest is how wide the places are that table shows.
func widest(list []*total, most int) int {
	width := 0
	for _, t := range list[:min(len(list), most)] {
		width = max(width, len(t.place()))
	}
	return width
}

// table prints list behind word, a destination a line. What does not fit into the
// terminal goes into a second line.
func (b *page) table(word string, list []*total, most, width int) {
	rest := 0
	if len(list) > most {
		rest = len(list) - most
		list = list[:most]
	}
	const before = len("  blocked  ")
	for _, t := range list {
		place, amount, why := t.place(), t.amount(), t.why()
		line := fmt.Sprintf("%-*s  %-9s %s", width, place, amount, why)
		if b.Width > 0 && before+len(line) > b.Width && why != "" {
			line = place + "  " + amount + "\n" + strings.Repeat(" ", before) + why
		}
		fmt.Fprintf(b, "  %s  %s\n", word, strings.TrimRight(line, " "))
	}
	if rest > 0 {
		fmt.Fprintf(b, "  %s  and %d more\n", word, rest)
	}
}

func (t *total) place() string {
	if t.zone != "" {
		return fmt.Sprintf("*.%s:%d (%d names)", cli.Safe(t.zone), t.port, t.names)
	}
	place := cli.Safe(t.host.String() + t.asked) // one of them is empty
	if t.port != 0 {
		if strings.Contains(place, ":") && !strings.HasPrefix(place, "[") {
			place = "[" + place + "]"
		}
		place += ":" + strconv.Itoa(int(t.port))
	}
	if t.proto != "" && t.proto != "tcp" {
		place = strings.TrimSpace(cli.Safe(t.proto) + " " + place)
	}
	if t.method != "" {
		place = cli.Safe(t.method) + " " + place + cli.Safe(t.path)
	}
	return place
}

func (t *total) amount() string {
	if t.reason == policy.ReasonAllowed {
		return plural(t.count, "flow")
	}
	return plural(t.count, "time")
}

// why is the rest of the line: what moved, or why nothing did.
func (t *total) why() string {
	switch {
	case t.reason == policy.ReasonAllowed:
		return size(t.bytes)
	case t.reason == policy.ReasonClientClosed:
		return "before it said anything"
	case t.reason == policy.ReasonDeniedByRule && t.rule != "":
		return explain.Meaning(t.reason) + ": " + cli.Safe(t.rule)
	case t.reason == policy.ReasonIPProhibited && t.host.Name() != "" && t.addr.IsValid():
		return "it is " + t.addr.String() + " here, " + addressWords(t.addr)
	case t.listable() && needless(t.host.Name()) != "":
		return "not needed: " + needless(t.host.Name())
	}
	return explain.Meaning(t.reason)
}

func nothing(n int) string {
	if n == 0 {
		return "nothing blocked"
	}
	return strconv.Itoa(n) + " blocked"
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// size spells a number of bytes, in units of 1000.
func size(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	}
	v, unit := float64(n), 0
	for ; v >= 999.95 && unit < 4; unit++ {
		v /= 1000
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + [...]string{"B", "kB", "MB", "GB", "TB"}[unit]
}
