package summary

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/policy"
)

// Bounds of the text.
const (
	maxAllowedLines = 12
	maxBlockedLines = 20
	maxSuggestions  = 40
	maxAddresses    = 10 // in a line of suggestions
)

// Write prints the summary on w: nothing when the program used no network and was
// refused no file, one line when nothing was blocked and little was allowed. Every name is printed
// so that a terminal shows it and does nothing else.
func (c *Collector) Write(w io.Writer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b bytes.Buffer
	c.writeNetwork(&b)
	writeFiles(&b, c.refusedFiles())
	if b.Len() == 0 {
		return nil
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (c *Collector) writeNetwork(b *bytes.Buffer) {
	allowed, audited := ordered(c.allowed), withoutQuestions(ordered(c.audited))
	blocked, failed := c.worthSaying()
	if len(allowed)+len(blocked)+len(failed)+len(audited)+c.overflow+c.unlisted == 0 {
		return
	}
	fmt.Fprintf(b, "launch: %s allowed, %s", plural(len(allowed), "destination"), nothing(len(blocked)))
	if len(failed) > 0 {
		fmt.Fprintf(b, ", %d failed", len(failed))
	}
	b.WriteByte('\n')
	width := max(widest(allowed, maxAllowedLines), widest(failed, maxBlockedLines), widest(blocked, maxBlockedLines))
	table(b, "allowed", allowed, maxAllowedLines, width)
	table(b, "failed", failed, maxBlockedLines, width)
	table(b, "blocked", blocked, maxBlockedLines, width)
	if c.unlisted > 0 {
		fmt.Fprintf(b, "  blocked  and %s (UDP, ICMP, ...) that came too fast to list\n", plural(c.unlisted, "packet"))
	}
	if c.overflow > 0 {
		fmt.Fprintf(b, "  (%d events more are in the event log only)\n", c.overflow)
	}
	advise(b, "To allow what was blocked, add:", blocked)
	if slices.ContainsFunc(blocked, func(t *total) bool { return t.reason == policy.ReasonCeiling }) {
		b.WriteString("What is outside_ceiling only the operator of egressd can allow, in its own policy.\n")
	}
	if len(audited) > 0 {
		table(b, "audited", audited, maxBlockedLines, widest(audited, maxBlockedLines))
		advise(b, "Audit mode let those through. To allow them without --audit, add:", audited)
	}
}

// worthSaying lists what the policy blocked, and what it allowed but the
// network did not deliver.
func (c *Collector) worthSaying() (blocked, failed []*total) {
	for _, t := range withoutQuestions(ordered(c.blocked)) {
		if t.reason.Class() == policy.ClassUpstream || t.reason.Class() == policy.ClassTimeout {
			failed = append(failed, t)
		} else {
			blocked = append(blocked, t)
		}
	}
	return blocked, failed
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

func table(b *bytes.Buffer, word string, list []*total, most, width int) {
	rest := 0
	if len(list) > most {
		rest = len(list) - most
		list = list[:most]
	}
	for _, t := range list {
		line := fmt.Sprintf("  %-8s %-*s  %s", word, width, t.place(), t.amount())
		fmt.Fprintln(b, strings.TrimRight(line, " "))
	}
	if rest > 0 {
		fmt.Fprintf(b, "  %-8s and %d more\n", word, rest)
	}
}

func (t *total) place() string {
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
		return strings.TrimRight(fmt.Sprintf("%-9s %s", plural(t.count, "flow"), size(t.bytes)), " ")
	}
	return fmt.Sprintf("%-9s %s", plural(t.count, "time"), t.reason)
}

// advise prints the rules that would allow list as one line, ready to paste.
// Private and special addresses stand apart: a program that probes the local
// network must not get its way by a paste. So do addresses without a name, of
// which those tried most often come first: programs that talk to peers, or scan,
// try any number.
func advise(b *bytes.Buffer, title string, list []*total) {
	var named, bare, special []*total
	for _, t := range list {
		switch {
		case t.suggest == "":
		case t.reason == policy.ReasonIPProhibited:
			special = append(special, t)
		case t.host.Addr().IsValid():
			bare = append(bare, t)
		default:
			named = append(named, t)
		}
	}
	often := func(x, y *total) int { return cmp.Compare(y.count, x.count) }
	slices.SortStableFunc(bare, often)
	slices.SortStableFunc(special, often)
	adviseOn(b, title, named, maxSuggestions)
	adviseOn(b, "Addresses without a name, to allow if you know whose they are:", bare, maxAddresses)
	adviseOn(b, "Private or special addresses, to allow only if you mean it:", special, maxAddresses)
}

func adviseOn(b *bytes.Buffer, title string, list []*total, most int) {
	var rules []string
	seen := make(map[string]bool)
	for _, t := range list {
		if !seen[t.suggest] && len(rules) < most {
			rules = append(rules, t.suggest)
		}
		seen[t.suggest] = true
	}
	if len(rules) == 0 {
		return
	}
	fmt.Fprintf(b, "%s\n  %s\n", title, policyflags.Spell(rules))
	if rest := len(seen) - len(rules); rest > 0 {
		fmt.Fprintf(b, "  and %d more: see --events FILE\n", rest)
	}
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
