package expand

import (
	"io/fs"
	"slices"
	"strings"

	"egressd/hermetic/internal/shell/pattern"
	"egressd/hermetic/internal/shell/state"
)

// glob is the files that a field matches. If there are none, the options
// decide.
func glob(sh *state.Shell, f *field) []string {
	text := f.pattern()
	ext := sh.Options.Shopt["extglob"]
	if !pattern.Special(text, ext || hasExt(text)) {
		return []string{f.text.String()}
	}
	out := match(sh, text)
	switch {
	case len(out) > 0:
		return out
	case sh.Options.Shopt["failglob"]:
		sh.Discardf("no match: %s", f.text.String())
	case sh.Options.Shopt["nullglob"]:
		return nil
	}
	return []string{f.text.String()}
}

func hasExt(s string) bool { return strings.Contains(s, "(") }

// match lists the paths that a pattern matches, sorted.
func match(sh *state.Shell, text string) []string {
	g := globber{sh: sh, fold: sh.Options.Shopt["nocaseglob"]}
	parts := splitPath(text)
	start, dir := "", sh.Dir.Path
	if strings.HasPrefix(text, "/") {
		start, dir = "/", "/"
		parts = splitPath(strings.TrimLeft(text, "/"))
		start = text[:len(text)-len(strings.TrimLeft(text, "/"))]
	}
	g.walk(start, dir, parts, 0)
	slices.Sort(g.out)
	g.out = slices.Compact(g.out)
	if ignore := sh.Vars.Get("GLOBIGNORE"); ignore != "" {
		g.out = ignored(sh, g.out, ignore)
	}
	return g.out
}

// ignored removes the names that GLOBIGNORE matches.
func ignored(sh *state.Shell, names []string, ignore string) []string {
	var pats []*pattern.Pattern
	for _, p := range strings.Split(ignore, ":") {
		pats = append(pats, Compile(sh, p, false))
	}
	return slices.DeleteFunc(names, func(n string) bool {
		return slices.ContainsFunc(pats, func(p *pattern.Pattern) bool { return p.Match(n) })
	})
}

// splitPath splits a pattern at slashes, which stay at the end of their part.
// As in bash, a slash splits also inside brackets and groups.
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

// plainSlashes removes the backslashes before slashes: a slash splits, quoted
// or not.
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

// globber collects the paths that a pattern matches.
type globber struct {
	sh   *state.Shell
	fold bool
	out  []string
}

// walk matches the remaining parts below dir. name is dir as it is printed.
func (g *globber) walk(name, dir string, parts []string, depth int) {
	g.sh.Check()
	if len(parts) == 0 {
		g.out = append(g.out, name)
		g.sh.CheckGlobs(len(g.out))
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
	case part == "**" && g.sh.Options.Shopt["globstar"]:
		g.deep(name, dir, parts[1:], slash, depth)
		return
	case !pattern.Special(part, true):
		plain := pattern.Unquote(part)
		path := state.Join(dir, plain)
		if _, err := g.sh.Session.FS.Lstat(path); err != nil {
			return
		}
		if slash != "" && !g.isDir(path) {
			return
		}
		g.walk(name+plain+slash, path, parts[1:], depth+1)
		return
	}
	pat := Compile(g.sh, part, g.fold)
	dots := g.sh.Options.Shopt["dotglob"]
	for _, e := range g.entries(dir, dots || strings.HasPrefix(part, ".") || strings.HasPrefix(part, `\.`)) {
		if !pat.Match(e.Name()) {
			continue
		}
		path := state.Join(dir, e.Name())
		if slash != "" && !g.isDir(path) {
			continue
		}
		g.walk(name+e.Name()+slash, path, parts[1:], depth+1)
	}
}

func (g *globber) isDir(path string) bool {
	info, err := g.sh.Session.FS.Stat(path)
	return err == nil && info.IsDir()
}

// entries lists a directory; with hidden, also names that begin with a dot.
func (g *globber) entries(dir string, hidden bool) []fs.DirEntry {
	all, err := g.sh.Session.FS.ReadDir(dir)
	if err != nil {
		return nil
	}
	if hidden {
		return all
	}
	return slices.DeleteFunc(all, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })
}

// deep is **: this directory and all below it, without following links.
func (g *globber) deep(name, dir string, rest []string, slash string, depth int) {
	switch {
	case len(rest) > 0:
		g.walk(name, dir, rest, depth+1)
	case name != "":
		g.out = append(g.out, name)
	}
	g.below(name, dir, rest, slash, depth)
}

// below continues deep in the directories of dir.
func (g *globber) below(name, dir string, rest []string, slash string, depth int) {
	if depth > 100 {
		return
	}
	for _, e := range g.entries(dir, g.sh.Options.Shopt["dotglob"]) {
		full, path := name+e.Name(), state.Join(dir, e.Name())
		switch {
		case len(rest) > 0 && e.IsDir():
			g.walk(full+"/", path, rest, depth+1)
		case len(rest) == 0 && (slash == "" || e.IsDir()):
			g.out = append(g.out, full+slash)
		}
		g.sh.CheckGlobs(len(g.out))
		if e.IsDir() {
			g.below(full+"/", path, rest, slash, depth+1)
		}
	}
}
