package explain

import (
	"fmt"
	"strings"

	"egressd/internal/summary"
	"egressd/policy"
)

// Policy describes a compiled policy in words.
func Policy(name string, p *policy.Policy) string {
	var b strings.Builder
	allow, deny := p.Rules()
	fmt.Fprintf(&b, "%s is good: %d allow and %d deny rules\n", summary.Safe(name), len(allow), len(deny))
	fmt.Fprintf(&b, "digest  %s\n", p.Digest())
	writeRules(&b, "allow", allow)
	writeRules(&b, "deny", deny)
	for _, s := range p.Secrets() {
		var hosts []string
		for _, h := range s.Hosts {
			hosts = append(hosts, h.String())
		}
		fmt.Fprintf(&b, "secret  %s in header %s, towards %s\n", s.Env, s.Header, strings.Join(hosts, ", "))
	}
	if mode := p.DNS().Mode; mode != "" {
		fmt.Fprintf(&b, "dns     %s\n", mode)
	}
	for _, u := range p.DNS().Upstreams {
		fmt.Fprintf(&b, "dns     upstream %s\n", summary.Safe(u.Text))
	}
	if p.Audit() {
		b.WriteString("audit   on: everything is allowed, and what would be denied is recorded\n")
	}
	if len(allow) == 0 && !p.Audit() {
		b.WriteString("nothing is allowed\n")
	}
	return b.String()
}

func writeRules(b *strings.Builder, word string, rules []*policy.Rule) {
	const most = 200
	width := 0
	for _, r := range rules[:min(len(rules), most)] {
		width = max(width, min(len(summary.Safe(r.Text)), 60))
	}
	for _, r := range rules[:min(len(rules), most)] {
		fmt.Fprintf(b, "%-7s %-*s  %s\n", word, width, summary.Safe(r.Text), summary.Safe(r.Pos.String()))
	}
	if len(rules) > most {
		fmt.Fprintf(b, "%-7s and %d more\n", word, len(rules)-most)
	}
}

// Presets lists the presets, with the first words of each.
func Presets(namesOnly bool) string {
	var b strings.Builder
	for _, name := range policy.PresetNames() {
		if namesOnly {
			fmt.Fprintln(&b, name)
			continue
		}
		text, _ := policy.PresetText(name)
		var rules []string
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "#")
			if line = strings.TrimSpace(line); line != "" {
				rules = append(rules, line)
			}
		}
		fmt.Fprintf(&b, "%-12s %s\n", name, strings.Join(rules, " "))
	}
	return b.String()
}
