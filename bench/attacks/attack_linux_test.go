package main

import (
	"os"
	"strings"
	"testing"
)

// What is called documented stands on a page.
func TestDocumented(t *testing.T) {
	var pages strings.Builder
	for _, name := range []string{"../../SECURITY.md", "../../docs/files.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages.Write(data)
	}
	text := strings.Join(strings.Fields(pages.String()), " ")
	names := make(map[string]bool)
	for _, at := range append(all(), day()...) {
		if at.documented != "" && !strings.Contains(text, at.documented) {
			t.Errorf("%s: no page says %q", at.name, at.documented)
		}
		if names[at.group+at.name] {
			t.Errorf("%s: two attacks have this name", at.name)
		}
		names[at.group+at.name] = true
		if at.check == nil || at.group == "" {
			t.Errorf("%s: nothing says whether it succeeded", at.name)
		}
	}
}

func TestJudge(t *testing.T) {
	results := []result{
		{Who: without, Outcome: leaked},
		{Who: ours, Outcome: contained},
		{Who: srt, Outcome: leaked},
		{Who: fence, Outcome: notRun},
		{Who: ours, Outcome: leaked, Documented: true},
		{Who: ours, Outcome: notApplicable},
	}
	if wrong := judge(results); len(wrong) > 0 {
		t.Errorf("nothing is wrong: %q", wrong)
	}
	for _, bad := range []result{
		{Who: without, Outcome: contained}, {Who: without, Outcome: notRun}, {Who: ours, Outcome: leaked}, {Who: ours, Outcome: notRun},
	} {
		if wrong := judge(append(results, bad)); len(wrong) != 1 {
			t.Errorf("%+v: %q", bad, wrong)
		}
	}
}

func TestTable(t *testing.T) {
	users := []user{{name: "nobody"}, {name: "root"}}
	here := []*contestant{{name: without}, {name: ours}, {name: fence, version: "v1"}}
	row := func(who, user, outcome string, told bool) result {
		return result{Group: "g", Attack: "a", Who: who, User: user, Outcome: outcome, Told: told}
	}
	got := table(users, here, []result{
		row(without, "nobody", leaked, false), row(without, "root", leaked, false),
		row(ours, "nobody", contained, true), row(ours, "root", contained, true),
		row(fence, "nobody", contained, false), row(fence, "root", leaked, false),
	})
	for _, want := range []string{
		"| attack | launch | fence v1 |", "| a | contained, told | nobody: contained; root: **leaked** |", "| 2 / 0 / 0 | 1 / 1 / 0 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	failed := table(users, here, []result{row(without, "root", contained, false), row(ours, "root", contained, false)})
	if !strings.Contains(failed, "control failed") {
		t.Errorf("an attack that proves nothing counts:\n%s", failed)
	}
}

// A client that does not work without a sandbox proves nothing about one. What launch breaks, or lets through, is an error.
func TestClientTable(t *testing.T) {
	u := user{name: "nobody"}
	here := []*contestant{{name: without}, {name: ours}, {name: srt, version: "1.0"}}
	cell := func(name, group, who, outcome string, told bool) result {
		return result{Attack: name, Group: group, User: u.name, Who: who, Outcome: outcome, Told: told}
	}
	results := []result{
		cell("curl", realClients, without, leaked, false), cell("curl", refused, without, leaked, false),
		cell("curl", realClients, ours, leaked, false), cell("curl", refused, ours, contained, true),
		cell("curl", realClients, srt, contained, false), cell("curl", refused, srt, leaked, false),
		cell("ssh", realClients, without, contained, false), cell("ssh", refused, without, leaked, false),
		cell("ssh", realClients, ours, contained, false), cell("ssh", refused, ours, contained, false),
	}
	got := clientTable(u, here, results, map[string]string{"curl": "8.1"})
	for _, want := range []string{
		"| client | launch | srt 1.0 |", "| curl 8.1 | works, kept, told | **fails**, **not kept** |", "| **of 1: work, are kept, are told why** | 1, 1, 1 | 0, 0, 0 |",
		"without a sandbox either: ssh.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if wrong := judgeClients(u, results); len(wrong) > 0 {
		t.Errorf("nothing is wrong: %q", wrong)
	}
	for i, bad := range []string{contained, leaked} {
		broken := append([]result{}, results...)
		broken[2+i].Outcome = bad
		if wrong := judgeClients(u, broken); len(wrong) != 1 {
			t.Errorf("%s %s: %q", broken[2+i].Group, bad, wrong)
		}
	}
}

// A page keeps what stands around its figures; one without a place for them is left alone. Ours has one.
func TestWritePage(t *testing.T) {
	ours, err := os.ReadFile("../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	page := t.TempDir() + "/page.md"
	for text, ok := range map[string]bool{string(ours): true, "no place": false} {
		if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := writePage(page, "| new |\n")
		after, rerr := os.ReadFile(page)
		if rerr != nil || (err == nil) != ok || !ok && string(after) != text {
			t.Errorf("%v, %v: %.100s", err, rerr, after)
		}
		head, _, _ := strings.Cut(text, figuresBegin)
		if ok && (!strings.HasPrefix(string(after), head) || !strings.Contains(string(after), "| new |\n") || strings.Count(string(after), "| curl") > 0) {
			t.Errorf("the page is not as it should be:\n%s", after)
		}
	}
}

// The README shows rows of the measured table, word for word, and how many there are.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(readme)) {
		if !strings.Contains(line, ", kept") && !strings.Contains(line, "of 45") && !strings.HasPrefix(line, "| client |") {
			continue
		}
		if rows++; !strings.Contains(string(page), line) {
			t.Errorf("docs/comparison.md has no such row: %s", line)
		}
	}
	if rows < 10 {
		t.Errorf("the README shows %d rows", rows)
	}
}
