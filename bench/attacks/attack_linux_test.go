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
