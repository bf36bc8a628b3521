//go:build system

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRightPage: the harness finds nothing in a page that is right, whatever
// forms its commands have.
func TestRightPage(t *testing.T) {
	data, err := os.ReadFile("testdata/right.md")
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePage("right.md", string(data))
	if err != nil {
		t.Fatal(err)
	}
	r := runPage(p, openShell(t, t.TempDir(), plainWorld))
	for _, f := range r.findings {
		t.Errorf("right.md:%d: %s", f.line, f.text)
	}
	if r.commands != 10 || r.checked != 5 || len(r.notRun) != 1 {
		t.Errorf("%d commands, %d checks, %d not run: something passed for nothing", r.commands, r.checked, len(r.notRun))
	}
}

// TestWrongPage: every way in which a page can be wrong is found.
func TestWrongPage(t *testing.T) {
	wrong := []struct{ name, text, want string }{
		{"a command fails", "sh:\ntrue\nlaunch --no-such-flag -- true\n", "exit code 125, want 0"},
		{"a command is not there", "sh:\nno-such-command\n", "exit code 127"},
		{"one in the middle fails", "sh:\nfalse\ntrue\n", "exit code 1"},
		{"one in a pipe fails", "sh:\nfalse | cat\n", "exit code 1"},
		{"it should fail and does not", "sh:\ntrue # exits 1\n", "exit code 0, want 1"},
		{"it fails otherwise", "sh:\nfalse # exits 2\n", "exit code 1, want 2"},
		{"the shell ends", "sh:\nexit 0\n", "shell ended"},
		{"another output", "sh:\necho a\ntext:\nb\n", "no line for: b"},
		{"more output", "sh:\necho a; echo b\ntext:\na\n", "more lines"},
		{"output of no command", "text:\nb\n", "no command before it"},
		{"output of a block that is not run", "sh:\ntrue\nnot:\nsh:\ntrue\ntext:\nb\n", "no command before it"},
		{"a background command that ends", "sh:\ntrue &\n", "has ended"},
		{"a host that is not allowed", "sh:\nlaunch --allow api.example.com -- curl -sS https://www.example.com/\n", "exit code"},
		{"no command", "sh:\n# later\n", "no complete command"},
		{"half a command", "sh:\nif true; then\n", "no complete command"},
		{"a policy with an unknown key", "yaml:\nallows: [a.example.com]\nallow: []\n", "allows"},
		{"a policy with a bad host", "yaml:\nallow: [\"*.com\"]\n", "*.com"},
		{"yaml that is nothing", "yaml:\nlunch: noon\n", "nobody knows what this is"},
		{"no yaml", "yaml:\n{\n", "yaml"},
		{"an event that is none", "json:\n{\"type\":\"lunch\"}\n", "schema"},
		{"json that is nothing", "json:\n{}\n", "schema"},
		{"a rule that is none", "rules:\na..b   two dots\n", "a..b"},
		{"a unit with an unknown setting", "ini:\n# x.service\n[Service]\nExecStart=/bin/true\nLunch=noon\n", "Lunch"},
		{"a workflow whose step fails", "yaml:\non: push\njobs:\n  a:\n    runs-on: x\n    steps:\n      - run: 'true'\n      - run: exit 3\n", "exit code 3"},
		{"a workflow with an unknown key", "yaml:\non: push\njobs:\n  a:\n    runs-on: x\n    lunch: noon\n    steps: []\n", "lunch"},
		{"a step with an unknown action", "yaml:\n- uses: somebody/else@v1\n", "nobody knows"},
		{"a step with an unknown input", "yaml:\n- uses: egressd/egressd/deploy/github-action@main\n  with:\n    lunch: noon\n", "lunch"},
		{"a step with an unknown expression", "yaml:\n- run: echo ${{ secrets.LUNCH }}\n", "secrets.LUNCH"},
		{"an alert on a metric that is not there", "yaml:\ngroups:\n  - name: a\n    rules:\n      - {alert: a, expr: egressd_lunch_total > 0}\n", "egressd_lunch_total"},
		{"a unit without a name", "ini:\n[Service]\nExecStart=/bin/true\n", "name"},
	}
	for _, tt := range wrong {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parsePage("wrong.md", pageOf(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			r := runPage(p, openShell(t, t.TempDir(), plainWorld))
			var all strings.Builder
			for _, f := range r.findings {
				all.WriteString(f.text + "\n")
			}
			if !strings.Contains(all.String(), tt.want) {
				t.Errorf("found %q, want %q", all.String(), tt.want)
			}
		})
	}
}

// pageOf writes a page: "sh:" and the like begin a block, "not:" marks the next
// one as not run.
func pageOf(text string) string {
	var out strings.Builder
	open := false
	end := func() {
		if open {
			out.WriteString("```\n\n")
		}
		open = false
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch line {
		case "sh:", "text:", "yaml:", "json:", "ini:":
			end()
			out.WriteString("```" + strings.TrimSuffix(line, ":") + "\n")
			open = true
		case "rules:":
			end()
			out.WriteString("<!-- rules -->\n```text\n")
			open = true
		case "not:":
			end()
			out.WriteString("<!-- not run: a test -->\n")
		default:
			out.WriteString(line + "\n")
		}
	}
	end()
	return out.String()
}

// TestSealed: what a page does stays in its world, whatever it does.
func TestSealed(t *testing.T) {
	outside := t.TempDir() // below the directory for temporary files, which worlds have for themselves
	checkout := t.TempDir()
	if err := os.WriteFile(filepath.Join(checkout, "kept"), []byte("as it was\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	marker := "egressd-docs-" + filepath.Base(env.base)
	s := openShell(t, checkout, plainWorld)
	for _, c := range []struct {
		text    string
		fails   bool // for everybody
		forRoot bool // a person may not do it anywhere
	}{
		{text: "test ! -e " + outside},
		{text: "echo changed >kept && echo new >made"},
		{text: "touch /tmp/" + marker + " /var/tmp/" + marker},
		{text: "touch /etc/" + marker + " /usr/local/bin/" + marker + " /run/" + marker, forRoot: true},
		{text: "mv /etc/passwd /etc/passwd.gone", forRoot: true},
		{text: "touch /var/lib/" + marker, fails: true},
		{text: "touch /usr/bin/" + marker, fails: true},
		{text: "touch /" + marker, fails: true},
		{text: "touch " + env.base + "/" + marker, fails: true},
		{text: "touch " + checkout + "/" + marker, fails: true},
	} {
		if os.Geteuid() != 0 && (c.forRoot || strings.Contains(c.text, env.base)) {
			continue
		}
		code, out, err := s.run(command{text: c.text})
		if err != nil {
			t.Fatal(err)
		}
		if (code != 0) != c.fails {
			t.Errorf("%s: exit code %d: %s", c.text, code, out)
		}
	}
	for _, dir := range []string{"/tmp", "/var/tmp", "/etc", "/usr/local/bin", "/usr/bin", "/run", "/var/lib", "/", env.base, checkout} {
		if _, err := os.Stat(filepath.Join(dir, marker)); err == nil {
			t.Errorf("%s holds what was made in the world", dir)
			_ = os.Remove(filepath.Join(dir, marker)) // as it was
		}
	}
	if data, err := os.ReadFile(filepath.Join(checkout, "kept")); err != nil || string(data) != "as it was\n" {
		t.Errorf("the checkout was changed: %q, %v", data, err)
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Error(err)
	}
}
