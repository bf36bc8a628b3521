package shell

import (
	"io/fs"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/pattern"
)

// braces expands the braces of a word; the words are not to be changed.
func (sh *shell) braces(w *syntax.Word) []*syntax.Word {
	if sh.opts&optNoBrace != 0 {
		return []*syntax.Word{w}
	}
	has := false
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.IndexByte(lit.Value, '{') >= 0 {
			has = true
		}
	}
	if !has {
		return []*syntax.Word{w}
	}
	return sh.expandBraces(w)
}

// glob is the files that a field matches, or what the options say when none
// does.
func (sh *shell) glob(f *field) []string {
	text := f.pattern()
	ext := sh.shopts["extglob"]
	if !pattern.Special(text, ext || hasExt(text)) {
		return []string{f.text.String()}
	}
	out := sh.match(text)
	switch {
	case len(out) > 0:
		return out
	case sh.shopts["failglob"]:
		sh.discardf("no match: %s", f.text.String())
	case sh.shopts["nullglob"]:
		return nil
	}
	return []string{f.text.String()}
}

func hasExt(s string) bool { return strings.Contains(s, "(") }

// match lists the names that a pattern of a path matches, sorted.
func (sh *shell) match(text string) []string {
	g := globber{sh: sh, fold: sh.shopts["nocaseglob"]}
	parts := splitPath(text)
	start, dir := "", sh.dir
	if strings.HasPrefix(text, "/") {
		start, dir = "/", "/"
		parts = splitPath(strings.TrimLeft(text, "/"))
		start = text[:len(text)-len(strings.TrimLeft(text, "/"))]
	}
	g.walk(start, dir, parts, 0)
	slices.Sort(g.out)
	g.out = slices.Compact(g.out)
	if ignore := sh.get("GLOBIGNORE"); ignore != "" {
		g.out = sh.ignored(g.out, ignore)
	}
	return g.out
}

func (sh *shell) ignored(names []string, ignore string) []string {
	var pats []*pattern.Pattern
	for _, p := range strings.Split(ignore, ":") {
		pats = append(pats, sh.compile(p, false))
	}
	return slices.DeleteFunc(names, func(n string) bool {
		return slices.ContainsFunc(pats, func(p *pattern.Pattern) bool { return p.Match(n) })
	})
}

// splitPath cuts a pattern at slashes; the separators stay with the part before
// them. A slash inside brackets or a group cuts, too, as in bash.
func splitPath(text string) []string {
	var parts []string
	if strings.Contains(text, `\/`) {
		text = plainSlashes(text)
	}
	for text != "" {
		i := strings.IndexByte(text, '/')
		if i < 0 {
			return append(parts, text)
		}
		j := i
		for j < len(text) && text[j] == '/' {
			j++
		}
		parts = append(parts, text[:j])
		text = text[j:]
	}
	return parts
}

// plainSlashes takes the backslashes off slashes: quoted or not, they cut.
func plainSlashes(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if i++; text[i] != '/' {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

type globber struct {
	sh   *shell
	fold bool
	out  []string
}

// walk matches the parts that are left below dir; name is dir as it is printed.
func (g *globber) walk(name, dir string, parts []string, depth int) {
	g.sh.check()
	if len(parts) == 0 {
		g.out = append(g.out, name)
		g.sh.checkGlobs(len(g.out))
		return
	}
	if depth > 100 {
		return
	}
	part := strings.TrimRight(parts[0], "/")
	slash := parts[0][len(part):]
	if slash != "" && pattern.Special(part, true) {
		slash = "/"
	}
	switch {
	case part == "**" && g.sh.shopts["globstar"]:
		g.deep(name, dir, parts[1:], slash, depth)
		return
	case !pattern.Special(part, true):
		plain := pattern.Unquote(part)
		path := join(dir, plain)
		if _, err := g.sh.ses.FS.Lstat(path); err != nil {
			return
		}
		if slash != "" && !g.isDir(path) {
			return
		}
		g.walk(name+plain+slash, path, parts[1:], depth+1)
		return
	}
	pat := g.sh.compile(part, g.fold)
	dots := g.sh.shopts["dotglob"]
	for _, e := range g.entries(dir, dots || strings.HasPrefix(part, ".") || strings.HasPrefix(part, `\.`)) {
		if !pat.Match(e.Name()) {
			continue
		}
		path := join(dir, e.Name())
		if slash != "" && !g.isDir(path) {
			continue
		}
		g.walk(name+e.Name()+slash, path, parts[1:], depth+1)
	}
}

func (g *globber) isDir(path string) bool {
	info, err := g.sh.ses.FS.Stat(path)
	return err == nil && info.IsDir()
}

func (g *globber) entries(dir string, hidden bool) []fs.DirEntry {
	all, err := g.sh.ses.FS.ReadDir(dir)
	if err != nil {
		return nil
	}
	if hidden {
		return all
	}
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
}

// deep is **: this directory and all below, not through links.
func (g *globber) deep(name, dir string, rest []string, slash string, depth int) {
	switch {
	case len(rest) > 0:
		g.walk(name, dir, rest, depth+1)
	case name != "":
		g.out = append(g.out, name)
	}
	g.below(name, dir, rest, slash, depth)
}

func (g *globber) below(name, dir string, rest []string, slash string, depth int) {
	if depth > 100 {
		return
	}
	for _, e := range g.entries(dir, g.sh.shopts["dotglob"]) {
		full, path := name+e.Name(), join(dir, e.Name())
		switch {
		case len(rest) > 0 && e.IsDir():
			g.walk(full+"/", path, rest, depth+1)
		case len(rest) == 0 && (slash == "" || e.IsDir()):
			g.out = append(g.out, full+slash)
		}
		g.sh.checkGlobs(len(g.out))
		if e.IsDir() {
			g.below(full+"/", path, rest, slash, depth+1)
		}
	}
}

// join makes name absolute below dir, without cleaning.
func join(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}
