package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	daysWork = "a day's work"
	finished = "THE STEP IS DONE"
)

// day is a day's work: what must succeed under each contestant, without a flag and without the network.
func day() []attack {
	const (
		module = "mkdir m; cd m; printf 'module m\\n\\ngo 1.21\\n' >go.mod; printf 'package m\\n\\nfunc F() int { return 1 }\\n' >m.go; " +
			"printf 'package m\\n\\nimport \"testing\"\\n\\nfunc TestF(t *testing.T) {\\n\\tif F() != 1 {\\n\\t\\tt.Fatal()\\n\\t}\\n}\\n' >m_test.go; "
		pack = "mkdir p; cd p; echo '{\"name\":\"p\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node -e 0\"}}' >package.json; "
		who  = "git config user.name a; git config user.email a@example.com; "
		as   = "git -c user.name=a -c user.email=a@example.com "
	)
	crate := "mkdir -p c/src; cd c; printf '[package]\\nname = \"c\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n' >Cargo.toml; " +
		"printf 'fn main() {}\\n#[test]\\nfn t() {}\\n' >src/main.rs; "
	wheel := "mkdir -p w/w-1.dist-info; cd w; echo 'x = 1' >w.py; printf 'Metadata-Version: 2.1\\nName: w\\nVersion: 1\\n' >w-1.dist-info/METADATA; " +
		"printf 'Wheel-Version: 1.0\\nGenerator: a\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' >w-1.dist-info/WHEEL; " +
		"printf 'w.py,,\\nw-1.dist-info/METADATA,,\\nw-1.dist-info/WHEEL,,\\nw-1.dist-info/RECORD,,\\n' >w-1.dist-info/RECORD; " +
		"python3 -m zipfile -c ../w-1-py3-none-any.whl w.py w-1.dist-info; cd ..; "
	list := []attack{
		{name: "git: add, commit", script: "echo a >f; git add f; " + as + "commit -qm a; git log --oneline | grep -q a"},
		{name: "git: branch, merge, rebase, stash", script: "echo a >f; git add f; " + as + "commit -qm a; git checkout -qb b; echo b >g; git add g; " + as + "commit -qm b; git checkout -q main; " + as + "merge -q --no-ff -m m b; echo c >>f; " + as + "stash -q; " + as + "stash pop -q"},
		{name: "git: tag, gc, worktree", script: "echo a >f; git add f; " + as + "commit -qm a; git tag v1; git gc -q; git worktree add -q wt; cd wt; git status -s"},
		{name: "git: a new repository, with a name and an address", script: "mkdir n; cd n; git init -q; " + who + "echo a >f; git add f; git commit -qm a"},
		{name: "git: clone of a directory", script: "echo a >f; git add f; " + as + "commit -qm a; git clone -q . copy; test -f copy/f"},
		{name: "git: configuration of the workspace's repository", script: "git config branch.b.remote origin", documented: "hooks and configuration stay read-only"},
		{name: "npm: run a script", script: pack + "npm test"},
		{name: "npm: pack, install", script: pack + "npm pack; mkdir ../q; cd ../q; echo '{}' >package.json; npm install --offline ../p/p-1.0.0.tgz; test -d node_modules/p"},
		{name: "pip: a venv, a wheel", script: wheel + "python3 -m venv v; v/bin/pip install --no-index ./w-1-py3-none-any.whl; v/bin/python -c 'import w'"},
		{name: "cargo: build, test", script: crate + "cargo build -q --offline; cargo test -q --offline; ./target/debug/c"},
		{name: "go: build, vet, test", script: module + "export GOPROXY=off GOTOOLCHAIN=local; go build ./...; go vet ./...; go test ./..."},
		{name: "make, a temporary file, a pipe", script: "printf 'all:\\n\\techo made >$(shell mktemp)\\n' >Makefile2; make -s -f Makefile2; yes | head -n 1000 | wc -l"},
	}
	for i := range list {
		list[i].group = daysWork
		list[i].script = "set -e\n" + list[i].script + "\necho " + finished
		list[i].setup = repository
		list[i].check = func(a *attempt) bool { return bytes.Contains(a.stdout, []byte(finished)) }
	}
	return list
}

// repository makes the workspace's real: the attacks' is but its files.
func repository(a *attempt) error {
	if err := os.RemoveAll(filepath.Join(a.ws, ".git")); err != nil {
		return err
	}
	text, err := exec.CommandContext(a.ctx, "git", "init", "-q", "-b", "main", a.ws).CombinedOutput()
	if err != nil {
		return fmt.Errorf("git init: %w: %s", err, text)
	}
	return nil
}

// tools are the directories of this machine's programs for a day's work: the programs themselves, not what picks
// one of them by files in the home directory.
func tools(ctx context.Context) string {
	dirs := systemPath
	for _, ask := range [][]string{
		{"go", "env", "GOROOT"}, {"rustc", "--print", "sysroot"}, {"python3", "-c", "import sys; print(sys.prefix)"},
	} {
		text, err := exec.CommandContext(ctx, ask[0], ask[1:]...).Output()
		if dir := strings.TrimSpace(string(text)); err == nil && dir != "" {
			dirs = filepath.Join(dir, "bin") + ":" + dirs
		}
	}
	return dirs
}

// judgeDay lists steps that launch does not let through, and no page says why.
func judgeDay(results []result) []string {
	var wrong []string
	cells := byCell(results)
	for k, r := range cells {
		control := k
		control.who = without
		if k.who == ours && r.Outcome != leaked && cells[control].Outcome == leaked && !r.Documented {
			wrong = append(wrong, "under launch this does not work: "+r.Attack+", "+r.User)
		}
	}
	return wrong
}

// dayTable is Markdown: a row for each step, yes or no.
func dayTable(users []user, here []*contestant, results []result) string {
	var b strings.Builder
	b.WriteString("| step |")
	for _, c := range here[1:] {
		fmt.Fprintf(&b, " %s |", strings.TrimSpace(c.name+" "+c.version))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(here)-1) + "\n")
	cells := byCell(results)
	for _, step := range day() {
		row := "| " + step.name + " |"
		for _, c := range here[1:] {
			row += " " + yesNo(cells, key{group: step.group, attack: step.name, who: c.name}, users) + " |"
		}
		b.WriteString(row + "\n")
	}
	return b.String()
}

func yesNo(cells map[key]result, row key, users []user) string {
	var words []string
	for _, u := range users {
		row.user = u.name
		control := row
		control.who = without
		word := "no"
		switch {
		case cells[control].Outcome != leaked:
			continue // the tool is not there for this user
		case cells[row].Outcome == leaked:
			word = "yes"
		case cells[row].Documented && row.who == ours:
			word = "no, documented"
		}
		words = append(words, word+" ("+u.name+")")
	}
	if len(words) == 2 && strings.Fields(words[0])[0] == strings.Fields(words[1])[0] {
		return strings.TrimSuffix(words[0], " ("+users[0].name+")")
	}
	return strings.Join(words, ", ")
}
