package main

import (
	"fmt"
	"slices"
	"strings"
)

// key names a cell of the table.
type key struct{ group, attack, user, who string }

func byCell(results []result) map[key]result {
	cells := make(map[key]result, len(results))
	for _, r := range results {
		cells[key{r.Group, r.Attack, r.User, r.Who}] = r
	}
	return cells
}

// judge lists what must not be: attacks that prove nothing, and holes that are not documented.
func judge(results []result) []string {
	var wrong []string
	for _, r := range results {
		name := r.Group + ": " + r.Attack + ", " + r.User
		switch {
		case r.Who == without && r.Outcome != leaked && r.Outcome != notApplicable:
			wrong = append(wrong, "control failed: "+name+" does not succeed without a sandbox; "+r.Why)
		case r.Who == ours && r.Outcome == leaked && !r.Documented:
			wrong = append(wrong, "launch leaks, and no page says so: "+name)
		case r.Who == ours && r.Outcome == notRun:
			wrong = append(wrong, "launch did not start: "+name+": "+r.Why)
		}
	}
	return wrong
}

// word is a result in a cell.
func (r result) word() string {
	switch {
	case r.Who == ours && r.Outcome == leaked && r.Documented:
		return "leaked, documented"
	case r.Outcome == leaked:
		return "**leaked**"
	case r.Told:
		return r.Outcome + ", told"
	}
	return r.Outcome
}

// table is Markdown: a row for each attack, a column for each contestant. Where users differ,
// a cell says both.
func table(users []user, here []*contestant, results []result) string {
	var b strings.Builder
	cells := byCell(results)
	shown := slices.DeleteFunc(slices.Clone(here), func(c *contestant) bool { return c.name == without })
	b.WriteString("| attack |")
	for _, c := range shown {
		fmt.Fprintf(&b, " %s |", strings.TrimSpace(c.name+" "+c.version))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(shown)) + "\n")
	group := ""
	var last key
	for _, r := range results {
		row := key{group: r.Group, attack: r.Attack}
		if row == last {
			continue
		}
		last = row
		if r.Group != group {
			group = r.Group
			fmt.Fprintf(&b, "| **%s** |%s\n", group, strings.Repeat(" |", len(shown)))
		}
		fmt.Fprintf(&b, "| %s |", r.Attack)
		for _, c := range shown {
			fmt.Fprintf(&b, " %s |", cell(cells, row, users, c.name))
		}
		b.WriteString("\n")
	}
	return b.String() + totals(shown, results)
}

func cell(cells map[key]result, row key, users []user, who string) string {
	var words, names []string
	for _, u := range users {
		row.user, row.who = u.name, who
		control := row
		control.who = without
		if cells[row].Outcome == notApplicable {
			continue
		}
		word := cells[row].word()
		if cells[control].Outcome != leaked && cells[row].Outcome != notCompared {
			word = "control failed"
		}
		words, names = append(words, word), append(names, u.name)
	}
	switch {
	case len(words) == 0:
		return notApplicable
	case len(words) == 1 && len(users) > 1:
		return words[0] + " (" + names[0] + ")"
	case len(words) == 1 || words[0] == words[1]:
		return words[0]
	}
	return fmt.Sprintf("%s: %s; %s: %s", names[0], words[0], names[1], words[1])
}

// totals counts attempts, of all users, whose control succeeded.
func totals(shown []*contestant, results []result) string {
	cells := byCell(results)
	counts := func(who, outcome string) (n int) {
		for k, r := range cells {
			control := k
			control.who = without
			if k.who == who && r.Outcome == outcome && cells[control].Outcome == leaked {
				n++
			}
		}
		return n
	}
	row := "| **attempts contained / leaked / not run** |"
	for _, c := range shown {
		row += fmt.Sprintf(" %d / %d / %d |", counts(c.name, contained), counts(c.name, leaked), counts(c.name, notRun))
	}
	return row + "\n"
}
