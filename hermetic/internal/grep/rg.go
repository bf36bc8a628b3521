package grep

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/gitignore"
	"egressd/hermetic/internal/regex"
)

// rg is one run of ripgrep: grep's search, over files that git does not ignore.
type rg struct {
	search
	o         rgOptions
	overrides *overrides
	rules     gitignore.Matcher
	kinds     []string // all types
}

func ripgrep(ctx context.Context, c *command.Call) int {
	given, operands, err := c.Options(rgKnown(), false)
	if err != nil {
		c.Errorf("%v", err)
		return statusError
	}
	r := &rg{kinds: slices.Sorted(maps.Keys(rgTypes()))}
	r.ctx, r.c, r.out = ctx, c, newPrinter(c.Stdout)
	r.o.options = options{syntax: regex.Perl, max: -1, separator: "--", separate: true, binary: "binary", anyText: true, label: "<stdin>"}
	r.o.depth = -1
	for _, s := range given {
		switch {
		case s.Name == "help":
			fmt.Fprint(c.Stdout, "Usage: rg [OPTION]... PATTERN [PATH]...\nSearch for PATTERN below each PATH, leaving out what .gitignore names.\n")
			return 0
		case s.Name == "version":
			fmt.Fprintln(c.Stdout, "rg (egressd hermetic)")
			return 0
		}
		if err := r.o.set(c, s); err != nil {
			c.Errorf("%v", err)
			return statusError
		}
	}
	if r.o.types {
		for _, k := range r.kinds {
			fmt.Fprintf(c.Stdout, "%s: %s\n", k, strings.ReplaceAll(rgTypes()[k], " ", ", "))
		}
		return 0
	}
	return r.run(operands)
}

func (r *rg) run(operands []string) int {
	if !r.o.listing {
		if len(r.o.patterns) == 0 {
			if len(operands) == 0 {
				r.c.Errorf("the following required arguments were not provided:\n  <PATTERN>")
				return statusError
			}
			r.o.patterns, operands = operands[:1], operands[1:]
		}
		r.o.pattern()
		if r.o.count || r.o.list != 0 || r.o.quiet {
			r.o.before, r.o.after = 0, 0
		}
		var err error
		if r.m, err = newMatcher(r.c, &r.o.options); err != nil {
			r.c.Errorf("regex parse error: %v", err)
			return statusError
		}
	}
	r.o.operands, r.o.dropZero = operands, !r.o.zeroes
	if r.o.allBinary {
		r.o.binary = "text"
	}
	r.overrides = newOverrides(strings.TrimPrefix(r.c.Dir, "/"), r.o.globs)
	r.each()
	return r.status()
}

// each searches the operands. Without one it is the standard input, where that
// is a file or a pipe, or else the directory.
func (r *rg) each() {
	operands := r.o.operands
	if len(operands) == 0 {
		if !r.o.listing && isInput(r.c.Stdin) {
			operands = []string{"-"}
		} else {
			operands, r.o.omitDot = []string{"./"}, true
		}
	}
	several := len(operands) > 1
	for _, name := range operands {
		if r.done() {
			return
		}
		if name == "-" && !r.o.listing {
			r.begin(several)
			r.reader(r.c.Stdin, r.o.label)
			continue
		}
		info, err := r.c.FS.Stat(r.c.Path(name))
		switch {
		case err != nil:
			r.failed = true
			if !r.o.silent {
				r.note("%s: %s (os error 2)", name, command.Reason(err))
			}
		case info.IsDir():
			r.begin(true)
			if r.search.o.binary == "binary" {
				r.search.o.binary = "without-match"
			}
			r.directory(name)
		default:
			r.begin(several)
			r.found1(name, name)
		}
	}
}

// begin sets grep's search up for one operand: with names where there is more
// than one file.
func (r *rg) begin(several bool) {
	r.search.o = r.o.options
	r.search.o.named = (several || r.o.named) && !r.o.unnamed
}

// found1 searches one file, or lists it.
func (r *rg) found1(name, shown string) {
	if !r.o.listing {
		r.file(name, shown)
		return
	}
	r.found = true
	if !r.o.quiet {
		r.out.listed(&r.search.o, shown)
	}
}

func isInput(in io.Reader) bool {
	f, ok := in.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return in != nil
	}
	info, err := f.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0)
}

// directory walks what is below an operand, with the rules of the directories
// above it.
func (r *rg) directory(name string) {
	real, err := r.c.FS.Resolve(r.c.Path(name))
	if err != nil {
		r.complain(name, err)
		return
	}
	real = strings.Trim(real, "/")
	before, git := r.rules.Len(), r.o.noRequire
	for at := 0; at <= len(real); at++ {
		if at == 0 || at < len(real) && real[at] == '/' {
			git = r.addRules(real[:at], git)
		}
	}
	r.walk(strings.TrimSuffix(name, "/"), real, git, 0)
	r.rules.Cut(before)
}

// addRules adds the rules of one directory, and reports whether it is in a
// repository.
func (r *rg) addRules(dir string, git bool) bool {
	if r.o.noIgnore {
		return git
	}
	at := "/" + dir
	if _, err := r.c.FS.Lstat(path.Join(at, ".git")); err == nil {
		git = true
	}
	names := []string{".ignore", ".rgignore"}
	if git && !r.o.noVCS {
		names = []string{".gitignore", ".ignore", ".rgignore"}
	}
	for _, name := range names {
		f, err := r.c.FS.Open(path.Join(at, name))
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(f, gitignore.MaxFile))
		_ = f.Close()
		if err == nil {
			r.rules.Add(dir, text)
		}
	}
	return git
}

// walk searches a directory: name is as it is shown, real its path below "/".
func (r *rg) walk(name, real string, git bool, depth int) {
	if r.o.depth >= 0 && depth >= r.o.depth || depth > maxDirectories {
		return
	}
	entries, err := r.c.FS.ReadDir("/" + real)
	if err != nil {
		r.complain(r.show(name), err)
		return
	}
	before := r.rules.Len()
	defer r.rules.Cut(before)
	git = r.addRules(real, git)
	for _, e := range entries {
		if r.done() {
			return
		}
		r.entry(e, name+"/"+e.Name(), path.Join(real, e.Name()), git, depth)
	}
}

func (r *rg) show(name string) string {
	if r.o.omitDot {
		return strings.TrimPrefix(name, "./")
	}
	return name
}

// entry searches one file or directory unless it is left out.
func (r *rg) entry(e fs.DirEntry, name, real string, git bool, depth int) {
	mode := e.Type()
	if mode&fs.ModeSymlink != 0 {
		if !r.o.follow {
			return
		}
		info, err := r.c.FS.Stat("/" + real)
		if err != nil || info.IsDir() && r.loops(name) {
			r.complain(r.show(name), err)
			return
		}
		mode = info.Mode()
	}
	verdict := r.overrides.decide(real, mode.IsDir())
	switch {
	case verdict < 0:
		return
	case verdict == 0 && !r.o.hidden && strings.HasPrefix(e.Name(), "."):
		return
	case verdict == 0 && !r.o.noIgnore && r.rules.Ignored(real, mode.IsDir()):
		return
	case mode.IsDir():
		r.walk(name, real, git, depth+1)
	case mode.IsRegular() && r.typed(name):
		r.found1(name, r.show(name))
	}
}
