package docs

import (
	"strings"
	"testing"
)

func TestParsePage(t *testing.T) {
	p, err := parsePage("x.md", strings.ReplaceAll(`# X

Do:

'''sh
one
two
'''

<!-- not run: needs a moon -->

'''yaml
# policy.yaml
allow: []
'''

- in a list:

  '''text
  a
    b
  '''
<!-- not run: stale, prose follows -->
prose
'''sh
three
'''
`, "'''", "```"))
	if err != nil {
		t.Fatal(err)
	}
	want := []block{
		{lang: "sh", text: "one\ntwo\n", line: 5},
		{lang: "yaml", text: "# policy.yaml\nallow: []\n", line: 12, notRun: "needs a moon"},
		{lang: "text", text: "a\n  b\n", line: 19},
		{lang: "sh", text: "three\n", line: 25},
	}
	if len(p.blocks) != len(want) {
		t.Fatalf("%d blocks: %+v", len(p.blocks), p.blocks)
	}
	for i, b := range p.blocks {
		if b.lang != want[i].lang || b.text != want[i].text || b.line != want[i].line || b.notRun != want[i].notRun {
			t.Errorf("block %d is %+v, want %+v", i, b, want[i])
		}
	}
	if f := p.blocks[1].fileName(); f != "policy.yaml" {
		t.Errorf("file name %q", f)
	}
	if f := p.blocks[0].fileName(); f != "" {
		t.Errorf("file name %q of a block that has none", f)
	}
}

func TestParsePageRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"not closed":       "'''sh\nx\n",
		"unknown language": "'''console\nx\n'''\n",
		"no language":      "'''\nx\n'''\n",
		"tildes inside":    "'''sh title=x\nx\n'''\n",
		"unknown mark":     "<!-- dont run -->\n'''sh\nx\n'''\n",
		"no reason":        "<!-- not run: -->\n'''sh\nx\n'''\n",
	} {
		if _, err := parsePage("x.md", strings.ReplaceAll(text, "'''", "```")); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestMismatch(t *testing.T) {
	for _, tt := range []struct {
		name, want, got string
		ok              bool
	}{
		{"same", "a\nb\n", "a\nb\n", true},
		{"blanks", "a   b\n", "  a b\n\n", true},
		{"within", "up ... s\n", "up 12.5 s\n", true},
		{"lines", "a\n...\nz\n", "a\nb\nc\nz\n", true},
		{"no lines", "a\n...\nz\n", "a\nz\n", true},
		{"literal", "a.c\n", "abc\n", false},
		{"missing", "a\nb\n", "a\n", false},
		{"more", "a\n", "a\nb\n", false},
		{"tail", "a\n...\n", "a\nb\n", true},
		{"other", "a\n...\nz\n", "a\nb\n", false},
		{"nothing printed", "a\n", "", false},
		{"nothing said", "\n", "a\n", false},
		{"part of a line", "a\n", "ab\n", false},
	} {
		if got := mismatch(tt.want, tt.got); (got == "") != tt.ok {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

func TestCommands(t *testing.T) {
	got, err := commands("one\n\ntwo \\\n  more\n# note\ncat <<'EOF'\nx\nEOF\nfor i in 1 2; do\n  echo $i\ndone\nfalse # exits 1: no\nserve &\nserve a && b &   # for ever\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []command{
		{text: "one"},
		{text: "two \\\n  more", line: 2},
		{text: "# note\ncat <<'EOF'\nx\nEOF", line: 4},
		{text: "for i in 1 2; do\n  echo $i\ndone", line: 8},
		{text: "false # exits 1: no", line: 11, exits: 1},
		{text: "serve &", line: 12, background: true},
		{text: "serve a && b &   # for ever", line: 13, background: true},
	}
	if len(got) != len(want) {
		t.Fatalf("%d commands: %+v", len(got), got)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("command %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	for _, text := range []string{"if true\n", "cat <<EOF\nx\n", "echo 'x\n", "# only a note\n", ""} {
		if got, err := commands(text); err == nil {
			t.Errorf("%q: accepted as %+v", text, got)
		}
	}
}
