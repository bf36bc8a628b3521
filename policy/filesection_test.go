package policy

import (
	"slices"
	"strings"
	"testing"

	"egressd/policy/files"
)

func filePolicy(t *testing.T, texts ...string) *Policy {
	t.Helper()
	var docs []*Document
	for _, text := range texts {
		d, err := ParseFile("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, d)
	}
	p, err := Compile(docs...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFileSection(t *testing.T) {
	const full = "files:\n  write: [/srv/out, ~/x]\n  read:\n    - ~/.aws/config\n  hide: ['**/.env']\n  home: private\n"
	p := filePolicy(t, full)
	want := []string{"write: /srv/out", "write: ~/x", "read: ~/.aws/config", "hide: **/.env", "home: private"}
	if got := p.FileRules(); !slices.Equal(got.Lines(), want) || got.Read[0].At != "p.yaml:4:7" {
		t.Errorf("got %+v", got)
	}
	if filePolicy(t, "files:\n").Digest() != filePolicy(t, "").Digest() {
		t.Error("an empty section changes the digest")
	}
	digests := map[string]string{}
	for _, text := range []string{
		"", full, "files: {write: [/a]}", "files: {read: [/a]}", "files: {hide: [/a]}", "files: {home: rw}", "files: {home: ro}", "files: {write: [/a, /b]}",
	} {
		d := filePolicy(t, text).Digest()
		if other, twice := digests[d]; twice {
			t.Errorf("%q and %q have one digest", other, text)
		}
		digests[d] = text
	}
	joined := filePolicy(t, "files: {write: [/a], home: rw}", "files: {write: [/b], hide: [/c], home: private}").FileRules().Lines()
	if !slices.Equal(joined, []string{"write: /a", "write: /b", "hide: /c", "home: rw"}) {
		t.Errorf("joined: %q", joined)
	}
	diff := filePolicy(t, "files: {hide: [/a], home: rw}").Diff(filePolicy(t, "files: {write: [/a]}"))
	if !slices.Equal(diff.Added, []string{"files.hide: /a", "files.home: rw"}) || !slices.Equal(diff.Removed, []string{"files.write: /a"}) {
		t.Errorf("%+v", diff)
	}
}

func TestFileSectionRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"files: [/a]":                          "p.yaml:1:8: files is a list",
		"files:\n  wriet: [/a]":                `p.yaml:2:3: files has no key "wriet": did you mean write`,
		"files:\n  write: /a":                  "p.yaml:2:10: files.write is the value",
		"files:\n  home: open":                 "p.yaml:2:9: files.home \"open\" is not known: write ro, rw or private",
		"files:\n  read:\n    - ../x":          "p.yaml:3:7: files.read: path \"../x\" holds ..",
		"files:\n  hide:\n    - ~root/x":       "another user's home",
		"files:\n  hide:\n    - **/.env":       "put it in quotes",
		"files:\n  hide: ['a[']":               "not a valid pattern",
		"files:\n  hide: ['']":                 "the path is empty",
		"files:\n  home: ro\n  home: rw":       "stands twice",
		"files:\n  write: [~]":                 "files.write holds nothing",
		"files: {write: [&a /x, /y]}":          "anchors",
		"files: {home: [ro]}":                  "files.home holds a list",
		"files: {hide: [\"" + "a/**b" + "\"]}": "whole directories",
	} {
		_, err := ParseFile("p.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	// What comes from elsewhere is checked as well.
	for _, s := range []files.Section{
		{Write: []files.Rule{{Path: "../x", At: "--write #1"}}}, {Home: 9}, {Hide: make([]files.Rule, maxFileRules+1)},
	} {
		if _, err := Compile(&Document{Files: s}); err == nil {
			t.Errorf("%d rules, home %d: accepted", len(s.Lines()), s.Home)
		}
	}
}

// Under a ceiling with a files section the smaller access counts; one without
// says nothing about files.
func TestFilesUnder(t *testing.T) {
	at := files.Place{Workspace: "/w", Home: "/home/me"}
	own := filePolicy(t, "files: {write: [/srv], read: [~/.ssh]}")
	for _, tt := range []struct {
		name string
		p    *Policy
		path string
		want files.Access
	}{
		{"alone", own, "/srv/a", files.ReadWrite},
		{"under one that says nothing", own.Under(filePolicy(t, "")), "/srv/a", files.ReadWrite},
		{"under one that hides", own.Under(filePolicy(t, "files: {write: [/srv], hide: [/srv/a]}")), "/srv/a", files.Hidden},
		{"under one that does not open", own.Under(filePolicy(t, "files: {home: ro}")), "/srv/a", files.ReadOnly},
		{"a secret", own.Under(filePolicy(t, "files: {home: ro}")), "/home/me/.ssh/id", files.Hidden},
		{"under two", own.Under(filePolicy(t, "files: {write: [/srv], hide: [/srv/a]}")).Under(filePolicy(t, "files: {write: [/srv]}")), "/srv/a", files.Hidden},
		{"nothing", nil, "/w/x", files.Hidden},
	} {
		g, err := tt.p.Files(at)
		if err != nil {
			t.Fatal(err)
		}
		if d := g.Decide(tt.path); d.Access != tt.want {
			t.Errorf("%s: %s is %s, want %s", tt.name, tt.path, d.Access, tt.want)
		}
	}
}
