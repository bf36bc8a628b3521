package grep

import (
	"path"
	"slices"
	"strings"

	"egressd/hermetic/gitignore"
)

// rgTypes are the kinds of files that -t and -T know, by their names.
func rgTypes() map[string]string {
	return map[string]string{
		"c": "*.[chH] *.cats", "cmake": "*.cmake CMakeLists.txt", "config": "*.cfg *.conf *.config *.ini",
		"cpp": "*.[ChH] *.cc *.cpp *.cxx *.hh *.hpp *.hxx *.inl", "cs": "*.cs", "csharp": "*.cs", "css": "*.css *.scss", "csv": "*.csv",
		"dart": "*.dart", "docker": "*Dockerfile*", "elixir": "*.ex *.exs *.eex", "erlang": "*.erl *.hrl", "go": "*.go",
		"graphql": "*.graphql *.graphqls", "h": "*.h *.hh *.hpp", "haskell": "*.hs *.lhs *.hsc", "html": "*.htm *.html *.ejs",
		"java": "*.java *.jsp *.jspx *.properties", "jinja": "*.j2 *.jinja *.jinja2", "js": "*.js *.jsx *.vue *.cjs *.mjs",
		"json": "*.json composer.lock", "jsonl": "*.jsonl", "kotlin": "*.kt *.kts", "less": "*.less", "lock": "*.lock package-lock.json",
		"log": "*.log", "lua": "*.lua", "make": "*.mk *.mak [Mm]akefile GNUmakefile", "markdown": "*.md *.markdown *.mdown *.mkdn",
		"md": "*.md *.markdown *.mdown *.mkdn", "perl": "*.pl *.pm *.plx *.t", "php": "*.php *.phtml", "proto": "*.proto", "protobuf": "*.proto",
		"py": "*.py *.pyi", "python": "*.py *.pyi", "r": "*.R *.r *.Rmd", "ruby": "*.rb *.gemspec *.rbw Gemfile Rakefile config.ru",
		"rust": "*.rs", "sass": "*.sass *.scss", "scala": "*.scala *.sbt",
		"sh": "*.sh *.bash *.csh *.ksh *.zsh .bashrc .bash_profile .profile .zshrc", "sql": "*.sql *.psql", "svelte": "*.svelte",
		"swift": "*.swift", "tf": "*.tf", "toml": "*.toml Cargo.lock", "ts": "*.ts *.tsx *.cts *.mts", "txt": "*.txt", "vue": "*.vue",
		"xml": "*.xml *.xsd *.xsl *.xslt *.dtd *.rng *.xhtml", "yaml": "*.yaml *.yml", "zig": "*.zig",
	}
}

// typed reports whether a file of that name is wanted by its kind.
func (r *rg) typed(name string) bool {
	base := path.Base(name)
	is := func(kind string) bool {
		if kind == "all" {
			return slices.ContainsFunc(r.kinds, func(k string) bool { return isType(k, base) })
		}
		return isType(kind, base)
	}
	return !slices.ContainsFunc(r.o.notType, is) && (len(r.o.ofType) == 0 || slices.ContainsFunc(r.o.ofType, is))
}

func isType(kind, base string) bool {
	for glob := range strings.FieldsSeq(rgTypes()[kind]) {
		if ok, _ := path.Match(glob, base); ok {
			return true
		}
	}
	return false
}

// overrides are the globs of -g, which are read as the lines of a .gitignore
// are, and decide before everything else.
type overrides struct {
	in, out gitignore.Matcher
	some    bool // there is one that takes files in
}

func newOverrides(dir string, globs []string) *overrides {
	var o overrides
	for _, g := range alternatives(globs) {
		against := "!" + g
		if rest, ok := strings.CutPrefix(g, "!"); ok {
			against = rest
		} else {
			o.some = true
		}
		o.in.Add(dir, []byte(g+"\n"))
		o.out.Add(dir, []byte(against+"\n"))
	}
	return &o
}

// decide reports what the globs say of a path: 1 in, -1 out, 0 nothing.
func (o *overrides) decide(name string, dir bool) int {
	switch {
	case o.out.Ignored(name, dir):
		return -1
	case o.in.Ignored(name, dir):
		return 1
	case o.some && !dir:
		return -1
	}
	return 0
}

// maxGlobs bounds what the braces of globs stand for.
const maxGlobs = 1000

// alternatives writes globs with {a,b} without them.
func alternatives(globs []string) (plain []string) {
	for todo := slices.Clone(globs); len(todo) > 0 && len(plain)+len(todo) < maxGlobs; {
		g := todo[0]
		todo = todo[1:]
		from := strings.IndexByte(g, '{')
		to := strings.IndexByte(g[max(from, 0):], '}') + max(from, 0)
		if from < 0 || to < from {
			plain = append(plain, g)
			continue
		}
		var each []string
		for part := range strings.SplitSeq(g[from+1:to], ",") {
			each = append(each, g[:from]+part+g[to+1:])
		}
		todo = append(each, todo...)
	}
	return plain
}
