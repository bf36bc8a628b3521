package jq_test

import (
	"strings"
	"testing"

	"egressd/hermetic/internal/gnu/gnutest"
)

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		program, input string
		status         int
		want           string // in the output or the message
	}{
		{"def f: 1 + f; f", "null", 5, "too deeply"},
		{"def f: if . >= 100000 then . else .+1 | f end; f", "0", 0, "100000"},
		{"[limit(5; repeat(1))] | length", "null", 0, "5"},
		{`"x" * 1000000000`, "null", 5, "too long"},
		{".[1e12] = 1", "null", 5, "too large"},
		{strings.Repeat("[", 3000) + strings.Repeat("]", 3000), "null", 3, "nested too deeply"},
		{strings.Repeat("1+", 50000) + "1", "null", 3, "nested too deeply"},
		{"[" + strings.Repeat(".a", 50000) + "]", "null", 3, "nested too deeply"},
		{"1" + strings.Repeat("?", 50000), "null", 3, "nested too deeply"},
		{"[" + strings.Repeat("1,", 15000) + "1] | length", "null", 0, "15001"},
		{".", strings.Repeat("[", 20000), 5, "depth limit"},
		{"reduce range(10000) as $i ({}; .[$i|tostring] = $i) | length", "null", 0, "10000"},
		{"reduce range(10000) as $i ([]; . + [$i]) | length", "null", 0, "10000"},
		{`$ENV | keys | join(",")`, "null", 0, `"HOME,PATH"`},
		{`import "a" as a; .`, "null", 3, "a"},
		{`input_filename, (try input catch .)`, "null", 0, "No more inputs"},
	} {
		r := gnutest.Run(t, commands(), nil, strings.NewReader(c.input), "jq", c.program)
		if r.Status != c.status || !strings.Contains(r.Stdout+r.Stderr, c.want) {
			t.Errorf("%.60s: status %d, %.200q, %.200q", c.program, r.Status, r.Stdout, r.Stderr)
		}
	}
}

// An object is a value: setting a key in it leaves every earlier state as it
// was, whichever is looked at first.
func TestObjectsAreValues(t *testing.T) {
	for program, want := range map[string]string{
		`{a:1} as $x | ($x | .b = 2) as $y | ($x | .c = 3) as $z | $y, $x, $z`:                                       `{"a":1,"b":2}{"a":1}{"a":1,"c":3}`,
		`{a:1} as $x | [range(3) as $i | $x | .a = $i | .["\($i)"] = $i] | ., $x`:                                    `[{"a":0,"0":0},{"a":1,"1":1},{"a":2,"2":2}]{"a":1}`,
		`[1] as $x | ($x + [2]) as $y | ($x + [3]) as $z | $x, $y, $z, ($y + [4]), $y`:                               `[1][1,2][1,3][1,2,4][1,2]`,
		`reduce range(4) as $i ([[], []]; .[0] += [$i] | .[1] += [.[0]]) | .[1][0], .[1][2], (.[0][:2] + [9]), .[0]`: `[0][0,1,2][0,1,9][0,1,2,3]`,
		`{z:1,a:2} | .b = 1 | del(.z) | .z = 3 | keys_unsorted`:                                                      `["a","b","z"]`,
		`{b:1,a:2} * {a:{c:1}} , ({b:1} + {a:1,b:2}), (to_entries? // 0)`:                                            `{"b":1,"a":{"c":1}}{"b":2,"a":1}0`,
	} {
		r := gnutest.Run(t, commands(), nil, strings.NewReader(""), "jq", "-nc", program)
		if got := strings.ReplaceAll(r.Stdout, "\n", ""); got != want {
			t.Errorf("%s: %s %s, want %s", program, got, r.Stderr, want)
		}
	}
}

const document = "# top\nname: x # n\nlist:\n  - a\n  - b: 1\nmap: {z: 1, a: 2}\nn: 0x1f\ns: \"true\"\n---\nname: y\n"

func TestYq(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{".name", "f"}, "x\n---\ny\n"},
		{[]string{".", "f"}, document},
		{[]string{".name = \"z\" | del(.map)", "f"}, "# top\nname: z # n\nlist:\n  - a\n  - b: 1\nn: 0x1f\ns: \"true\"\n---\nname: z\n"},
		{[]string{"-o", "json", "-I0", "select(.list) | .n, .s, .map", "f"}, "31\n\"true\"\n{\"z\":1,\"a\":2}\n"},
		{[]string{"-P", "-p", "json", ".", "j"}, "b:\n  - 1\n  - x: null\na: t\n"},
		{[]string{"-n", `{"a": env(HOME), "b": strenv(PATH)}`}, "a: /\nb: /bin\n"},
	} {
		r := gnutest.Run(t, commands(), map[string]string{"f": document, "j": `{"b":[1,{"x":null}],"a":"t"}`}, strings.NewReader(""), append([]string{"yq"}, c.args...)...)
		if r.Stdout != c.want {
			t.Errorf("%q: %d %q %s", c.args, r.Status, r.Stdout, r.Stderr)
		}
	}
	r := gnutest.Run(t, commands(), map[string]string{"f": document}, strings.NewReader(""), "yq", "-i", `.name = "q"`, "f")
	if got, want := r.File(t, "f"), strings.NewReplacer("name: x", "name: q", "name: y", "name: q").Replace(document); got != want {
		t.Errorf("in place: %q", got)
	}
}

// Aliases of aliases: 10^9 elements from nine short lines.
func TestYAMLBomb(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		n, p := string(rune('0'+i)), string(rune('0'+i-1))
		bomb += "a" + n + ": &a" + n + " [" + strings.TrimSuffix(strings.Repeat("*a"+p+",", 10), ",") + "]\n"
	}
	r := gnutest.Run(t, commands(), map[string]string{"f": bomb}, strings.NewReader(""), "yq", ".a0", "f")
	if r.Status == 0 || !strings.Contains(r.Stderr, "alias") {
		t.Errorf("status %d, %.100q %.100q", r.Status, r.Stdout, r.Stderr)
	}
}

// An alias to what it stands in has no end, and is refused before the stack has.
func TestYAMLOfItself(t *testing.T) {
	for _, text := range []string{"a: &a [*a]\n", "&a [*a, *a]\n", "<<: &a\n  <<: *a\n"} {
		r := gnutest.Run(t, commands(), map[string]string{"f": text}, strings.NewReader(""), "yq", ".", "f")
		if r.Status == 0 || !strings.Contains(r.Stderr, "alias") {
			t.Errorf("%q: status %d, %.100q %.100q", text, r.Status, r.Stdout, r.Stderr)
		}
	}
}
