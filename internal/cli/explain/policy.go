package explain

import (
	"fmt"
	"slices"
	"strings"

	"egressd/internal/cli"
	"egressd/policy"
)

// Policy describes a compiled policy in words.
func Policy(name string, p *policy.Policy) string {
	var b strings.Builder
	allows, denies := p.Count()
	fmt.Fprintf(&b, "%s is good: %d allow and %d deny rules\n", cli.Safe(name), allows, denies)
	allow, deny := p.Own(false), p.Own(true)
	fmt.Fprintf(&b, "digest  %s\n", p.Digest())
	width := 0
	for _, r := range slices.Concat(firstRules(allow), firstRules(deny)) {
		width = max(width, min(len(cli.Safe(r.Text)), 60))
	}
	writeRules(&b, "allow", allow, width)
	writeRules(&b, "deny", deny, width)
	writeLists(&b, p)
	for _, s := range p.Secrets() {
		var hosts []string
		for _, to := range s.Targets() {
			hosts = append(hosts, to.String())
		}
		fmt.Fprintf(&b, "secret  %s in header %s, towards %s\n", s.Env, s.Header, strings.Join(hosts, ", "))
	}
	for _, name := range p.Intranet() {
		fmt.Fprintf(&b, "intranet %s and the names below it may have private addresses\n", cli.Safe(name))
	}
	if mode := p.DNS().Mode; mode != policy.DNSUnset {
		fmt.Fprintf(&b, "dns     %s\n", mode)
	}
	for _, u := range p.DNS().Upstreams {
		fmt.Fprintf(&b, "dns     upstream %s\n", cli.Safe(u.Text))
	}
	writeFileRules(&b, p.FileRules())
	if p.Audit() {
		b.WriteString("audit   on: everything is allowed, and what would be denied is recorded\n")
	}
	for _, w := range p.Warnings() {
		fmt.Fprintf(&b, "warning %s\n", cli.Safe(w.Error()))
	}
	if allows == 0 && !p.Audit() {
		b.WriteString("nothing is allowed\n")
	}
	return b.String()
}

// maxRules bounds the rules that are listed one by one.
const maxRules = 200

func firstRules(rules []*policy.Rule) []*policy.Rule { return rules[:min(len(rules), maxRules)] }

// writeRules lists rules, with their places in one column.
func writeRules(b *strings.Builder, word string, rules []*policy.Rule, width int) {
	for _, r := range firstRules(rules) {
		fmt.Fprintf(b, "%-7s %-*s  %s\n", word, width, cli.Safe(r.Text), cli.Safe(r.Pos.String()))
	}
	if len(rules) > maxRules {
		fmt.Fprintf(b, "%-7s and %d more\n", word, len(rules)-maxRules)
	}
}

// writeLists lists the list files, one in a line.
func writeLists(b *strings.Builder, p *policy.Policy) {
	allow, deny := p.Lists()
	for i, l := range slices.Concat(allow, deny) {
		word := "allow"
		if i >= len(allow) {
			word = "deny"
		}
		fmt.Fprintf(b, "%-7s %d rules of the list %s (%s)", word, l.Rules(), cli.Safe(l.Path), l.Format)
		if n := l.Skipped(); n > 0 {
			fmt.Fprintf(b, "; what was left out of it: %d", n)
		}
		b.WriteByte('\n')
	}
}

// Preset reports the presets of these names as they are written. program is the
// command that lists them, for the error.
func Preset(program string, names []string) (string, error) {
	var b strings.Builder
	for _, name := range names {
		text, ok := policy.PresetText(name)
		if !ok {
			return "", fmt.Errorf("no preset %q: %s presets lists them", name, program)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// Presets lists all presets, one in a line: its name and, unless namesOnly is set,
// its rules.
func Presets(namesOnly bool) string {
	var b strings.Builder
	for _, name := range policy.PresetNames() {
		if namesOnly {
			fmt.Fprintln(&b, name)
			continue
		}
		text, _ := policy.PresetText(name)
		fmt.Fprintf(&b, "%-12s %s\n", name, strings.Join(rulesIn(text), " "))
	}
	return b.String()
}
