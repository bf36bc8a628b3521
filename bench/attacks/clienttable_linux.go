package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"egressd/bench/contest"
)

// Where the figures stand in the page.
const (
	figuresBegin = "<!-- The figures begin: go run ./bench/attacks -clients -page docs/comparison.md writes them. -->\n"
	figuresEnd   = "<!-- The figures end. -->\n"
)

// writePage puts a table into the page, between its two marks.
func writePage(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), figuresBegin)
	_, after, ok2 := strings.Cut(rest, figuresEnd)
	if !ok || !ok2 {
		return errors.New(page + " has no place for figures")
	}
	m := contest.Machine()
	head := fmt.Sprintf("%v, Linux %v, as an ordinary user.\n\n", m["date"], m["kernel"])
	return os.WriteFile(page, []byte(before+figuresBegin+"\n"+head+table+"\n"+figuresEnd+after), 0o644) // #nosec: a page
}

// clientTable is Markdown: a row for each client, whether it reached the allowed host, and
// whether it was kept from the other one.
func clientTable(u user, here []*contestant, results []result, version map[string]string) string {
	var b strings.Builder
	b.WriteString("| client |")
	for _, c := range here[1:] {
		fmt.Fprintf(&b, " %s |", strings.TrimSpace(c.name+" "+c.version))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(here)-1) + "\n")
	cells := byCell(results)
	var absent []string
	works, kept, told, rows := map[string]int{}, map[string]int{}, map[string]int{}, 0
	for _, c := range clients() {
		row := key{attack: c.name, user: u.name, group: realClients, who: without}
		other := row
		other.group = refused
		if _, tried := cells[row]; !tried {
			continue
		}
		if cells[row].Outcome != leaked || cells[other].Outcome != leaked {
			absent = append(absent, c.name)
			continue
		}
		rows++
		fmt.Fprintf(&b, "| %s |", strings.TrimSpace(c.name+" "+version[c.name]))
		for _, who := range here[1:] {
			row.who, other.who = who.name, who.name
			words := "**fails**"
			if cells[row].Outcome == leaked {
				words, works[who.name] = "works", works[who.name]+1
			}
			switch d := cells[other]; {
			case d.Outcome == leaked:
				words += ", **not kept**"
			case d.Told:
				words, kept[who.name], told[who.name] = words+", kept, told", kept[who.name]+1, told[who.name]+1
			default:
				words, kept[who.name] = words+", kept", kept[who.name]+1
			}
			fmt.Fprintf(&b, " %s |", words)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "| **of %d: work, are kept, are told why** |", rows)
	for _, who := range here[1:] {
		fmt.Fprintf(&b, " %d, %d, %d |", works[who.name], kept[who.name], told[who.name])
	}
	b.WriteString("\n")
	if len(absent) > 0 {
		b.WriteString("\nLeft out, as they do not work here without a sandbox either: " + strings.Join(absent, ", ") + ".\n")
	}
	return b.String()
}

// judgeClients lists clients that launch breaks, or does not keep.
func judgeClients(u user, results []result) []string {
	var wrong []string
	cells := byCell(results)
	for _, c := range clients() {
		for group, want := range map[string]string{realClients: leaked, refused: contained} {
			k := key{attack: c.name, user: u.name, group: group, who: without}
			if cells[k].Outcome != leaked {
				continue
			}
			if k.who = ours; cells[k].Outcome != want && cells[k].Who != "" {
				wrong = append(wrong, "under launch, "+c.name+": "+group+": "+cells[k].Outcome)
			}
		}
	}
	return wrong
}
