//go:build system

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// finding is one thing that a page says and that is not so.
type finding struct {
	line int
	text string
}

// result is how a page went.
type result struct {
	findings []finding
	notRun   []finding // with the page's reasons
	forRoot  []finding // what only root can run here
	commands int
	checked  int // blocks other than commands
}

// runPage runs and checks every block of p, in order, and goes on after a
// failure: one run shows everything that is wrong.
func runPage(p page, s *shell) result {
	var r result
	fail := func(line int, format string, args ...any) {
		r.findings = append(r.findings, finding{line, fmt.Sprintf(format, args...)})
	}
	printed, ran := "", false
	for _, b := range p.blocks {
		if b.notRun != "" {
			r.notRun = append(r.notRun, finding{b.line, b.notRun})
			ran = false
			continue
		}
		switch b.lang {
		case "sh":
			list, err := commands(b.text)
			if err != nil {
				fail(b.line, "%v", err)
				continue
			}
			if why := s.forRootOnly(list); why != "" {
				r.forRoot = append(r.forRoot, finding{b.line, why})
				ran = false
				continue
			}
			printed, ran = "", true
			for _, c := range list {
				r.commands++
				code, out, err := s.run(c)
				printed += out
				switch at := b.line + 1 + c.line; {
				case err != nil:
					fail(at, "%s\n%s\n%v", c.text, tail(out), err)
					return r
				case code != c.exits:
					fail(at, "%s\nexit code %d, want %d; it printed:\n%s", c.text, code, c.exits, tail(out))
				}
			}
		case "text":
			r.checked++
			switch {
			case b.marked("rules"):
				if err := checkRules(b.text); err != nil {
					fail(b.line, "%v", err)
				}
			case !ran && len(r.forRoot) > 0 && r.forRoot[len(r.forRoot)-1].line < b.line:
				r.checked-- // the output of what was not run
			case !ran:
				fail(b.line, "a text block with no command before it: whose output is it?")
			default:
				if why := mismatch(b.text, printed); why != "" {
					fail(b.line, "%s; the commands printed:\n%s", why, tail(printed))
				}
			}
		default:
			r.checked++
			if name := b.fileName(); name != "" {
				if err := s.save(name, b.text); err != nil {
					fail(b.line, "%v", err)
				}
			}
			if err := checkBlock(b, s); err != nil {
				fail(b.line, "%v", err)
			}
		}
	}
	return r
}

// forRootOnly reports the first command that needs what only root has here: a
// container engine, or root.
func (s *shell) forRootOnly(list []command) string {
	if os.Geteuid() == 0 {
		return ""
	}
	for _, c := range list {
		for _, word := range []string{"docker ", "helm ", "kubectl ", "sudo "} {
			if strings.HasPrefix(c.text, word) {
				return c.text
			}
		}
	}
	return ""
}

// save writes a block to the file that its first line names, as the reader
// does with an editor.
func (s *shell) save(name, text string) error {
	text = strings.TrimPrefix(text, "# "+name+"\n")
	from := filepath.Join(s.dir, "log", fmt.Sprintf("save-%d", s.n))
	if err := os.WriteFile(from, []byte(text), 0o644); err != nil {
		return err
	}
	code, out, err := s.run(command{text: fmt.Sprintf("mkdir -p %q && cat %q >%q", filepath.Dir(name), from, name)})
	if err != nil || code != 0 {
		return fmt.Errorf("save %s: exit %d: %s %w", name, code, out, err)
	}
	return nil
}

// tail keeps messages readable.
func tail(out string) string {
	const most = 3000
	if len(out) > most {
		out = "[...]" + out[len(out)-most:]
	}
	return strings.TrimRight(out, "\n")
}
