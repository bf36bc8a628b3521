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
