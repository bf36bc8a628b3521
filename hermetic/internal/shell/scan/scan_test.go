package scan

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// TestParse parses what bash accepts and the parser alone does not.
func TestParse(t *testing.T) {
	for _, text := range []string{
		"cat <<EOF$(x)\na\nEOF$(x)\n",
		"cat <<EOF<(x)\na\nEOF<(x)",
		"cat <<E\nnever closed",
		"echo $((1 $op 2))",
		"((a $op b))",
		"echo $((a); (b) )",
		"a[x y]=1",
		"! ! true",
		"export 1a=2",
		"echo \xff\xfe",
	} {
		if _, err := parser().Parse(strings.NewReader(text), ""); err == nil {
			t.Errorf("%q: the parser reads it without help", text)
		}
		if s := Parse(text, 200); s.Mistake != nil {
			t.Errorf("%q: %s", text, s.Mistake.Text)
		}
	}
	if s := Parse("echo '\xff'", 200); s.Lines[0][0].Cmd.(*syntax.CallExpr).Args[1].Parts[0].(*syntax.SglQuoted).Value != "\xff" {
		t.Error("bytes are changed")
	}
}

func TestLines(t *testing.T) {
	s := Parse("a; b\nc\nd; )\ne", 200)
	if len(s.Lines) != 2 || len(s.Lines[0]) != 2 || s.Mistake == nil {
		t.Fatalf("%d lines, %v", len(s.Lines), s.Mistake)
	}
	if got := s.Mistake.Say("bash", 0); got[0] != "bash: line 3: syntax error near unexpected token `)'" || got[1] != "bash: line 3: `d; )'" {
		t.Errorf("%q", got)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"echo \"abc":     "unexpected EOF while looking for matching `\"'",
		"echo 'abc":      "unexpected EOF while looking for matching `''",
		"while true; do": "syntax error: unexpected end of file",
		"if; then":       "syntax error near unexpected token `;'",
		"echo a;; b":     "syntax error near unexpected token `;;'",
		"&& a":           "syntax error near unexpected token `&&'",
		"}":              "syntax error near unexpected token `}'",
		"echo ${x":       "unexpected EOF while looking for matching `}'",
		"(a":             "syntax error: unexpected end of file",
	} {
		s := Parse(text, 200)
		if s.Mistake == nil || s.Mistake.Text != want {
			t.Errorf("%q: %+v, want %s", text, s.Mistake, want)
		}
	}
}

func TestShallow(t *testing.T) {
	for text, want := range map[string]bool{
		strings.Repeat("(", 199) + strings.Repeat(")", 199):                 true,
		strings.Repeat("if a; then ", 900):                                  false,
		strings.Repeat("a || ", 16000):                                      false,
		strings.Repeat("a ||\n", 16000):                                     false,
		strings.Repeat("a ||         ", 16000):                              false,
		"[[ a" + strings.Repeat("\n&& a", 16000):                            false,
		"echo $((1" + strings.Repeat("\n+1", 16000):                         false,
		"echo ${a[1" + strings.Repeat("\n+1", 16000):                        false,
		"x[1" + strings.Repeat("\n+1", 16000):                               false,
		strings.Repeat("echo '\\033[31m'$(date +%s) && ls -l || x\n", 6000): true,
		strings.Repeat("echo a; ", 6000):                                    true,
		strings.Repeat("if a; then b; fi\n", 6000):                          true,
		strings.Repeat("# (((((\n", 500):                                    true,
		"echo " + strings.Repeat("a-b/c+d=ef", 5000):                        true,
	} {
		if got := Shallow(text, 200); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

func TestGuard(t *testing.T) {
	for _, deep := range []string{
		strings.Repeat("(", 60000), strings.Repeat("${a:-", 20000), strings.Repeat("$((", 20000), strings.Repeat("{ ", 20000),
		strings.Repeat("( \")\"; ", 20000), "cat <<E\n\"\nE\n" + strings.Repeat("(", 20000), strings.Repeat("\"$(echo ", 20000),
		"echo $((" + strings.Repeat("- ", 60000) + "1))", "[[ " + strings.Repeat("! ", 60000) + "a ]]", strings.Repeat("if a; then ", 20000),
		strings.Repeat("f() ", 60000) + "{ :; }", "echo $((" + strings.Repeat("1?1:", 30000) + "1))", strings.Repeat("time ", 60000) + "a",
	} {
		if s := Parse(deep, 200); !s.Deep {
			t.Errorf("%.30q: not too deep", deep)
		}
	}
	for _, ok := range []string{
		strings.Repeat("( ", 150) + ":" + strings.Repeat(" )", 150), strings.Repeat("echo $(", 150) + ":" + strings.Repeat(")", 150),
		strings.Repeat("echo 'a(b'\n", 5000),
	} {
		if s := Parse(ok, 200); s.Deep || s.Mistake != nil {
			t.Errorf("%.30q: %v %+v", ok, s.Deep, s.Mistake)
		}
	}
}
