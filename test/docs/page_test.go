package docs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// block is one fenced block of a page.
type block struct {
	lang   string
	text   string // without the fences and without their indentation
	line   int    // of the opening fence, from 1
	marks  []string
	notRun string // the reason, when the page says that it cannot be run
}

// page is what a reader sees as one document.
type page struct {
	name   string // as docs/policy.md
	text   string
	blocks []block
}

// languages are those that a block may have; each is run or checked.
var languages = []string{"sh", "text", "yaml", "json", "ini"}

var (
	fence   = regexp.MustCompile("^( *)(```+)([a-zA-Z]*) *$")
	comment = regexp.MustCompile(`^ *<!-- *(.*?) *--> *$`)
	notRun  = regexp.MustCompile(`^not run: *(.*)$`)
)

// marks are the comments that say something about the block below them.
var knownMarks = []string{"rules"}

// parsePage finds the blocks of a page. A fence that is not closed, a language
// that nobody would check, or a mark that nobody knows is an error: such a
// block would pass for nothing.
func parsePage(name, text string) (page, error) {
	p := page{name: name, text: text}
	lines := strings.Split(text, "\n")
	var marks []string
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := comment.FindStringSubmatch(line); m != nil {
			marks = append(marks, m[1])
			continue
		}
		m := fence.FindStringSubmatch(line)
		switch {
		case m == nil && strings.HasPrefix(strings.TrimSpace(line), "```"):
			return p, fmt.Errorf("%s:%d: a fence that is not understood: %s", name, i+1, line)
		case m == nil && strings.TrimSpace(line) == "":
			continue // between a mark and its block
		case m == nil:
			marks = nil
			continue
		}
		end := closing(lines, i+1, m[1]+m[2])
		if end < 0 {
			return p, fmt.Errorf("%s:%d: the block is not closed", name, i+1)
		}
		b := block{lang: m[3], line: i + 1, text: dedent(lines[i+1:end], len(m[1]))}
		if err := b.setMarks(marks); err != nil {
			return p, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		if !slices.Contains(languages, b.lang) {
			return p, fmt.Errorf("%s:%d: language %q is none that is run or checked: one of %v", name, i+1, b.lang, languages)
		}
		p.blocks = append(p.blocks, b)
		marks, i = nil, end
	}
	return p, nil
}

func closing(lines []string, from int, fence string) int {
	for i := from; i < len(lines); i++ {
		if strings.TrimRight(lines[i], " ") == fence {
			return i
		}
	}
	return -1
}

func dedent(lines []string, by int) string {
	var out strings.Builder
	for _, l := range lines {
		out.WriteString(l[min(by, len(l)-len(strings.TrimLeft(l, " "))):] + "\n")
	}
	return out.String()
}

func (b *block) setMarks(marks []string) error {
	for _, m := range marks {
		if why := notRun.FindStringSubmatch(m); why != nil {
			if why[1] == "" {
				return fmt.Errorf("<!-- %s -->: say why", m)
			}
			b.notRun = why[1]
			continue
		}
		if !slices.Contains(knownMarks, m) {
			return fmt.Errorf("<!-- %s -->: a mark that nobody knows", m)
		}
		b.marks = append(b.marks, m)
	}
	return nil
}

func (b *block) marked(m string) bool { return slices.Contains(b.marks, m) }

// fileName reports the file that a block is to be saved as: its first line is
// a comment with nothing but a path.
func (b *block) fileName() string {
	first, _, _ := strings.Cut(b.text, "\n")
	m := regexp.MustCompile(`^# ([A-Za-z0-9._/@-]+\.[a-z]+|/[A-Za-z0-9._/@-]+)$`).FindStringSubmatch(first)
	if m == nil {
		return ""
	}
	return path.Clean(m[1])
}
