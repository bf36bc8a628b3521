package policy

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"egressd/policy/internal/grammar"
	"egressd/policy/internal/lists"
	"egressd/policy/internal/names"
	"egressd/policy/internal/suffix"
)

// Implementation constant: each list file costs every decision a look-up.
const maxListFiles = 64

// listFile is a long list of rules in a file of its own, one a line, and its text
// once [Document.ReadLists] has read it.
type listFile struct {
	Path   string // as it is opened: a relative one was joined to the policy file's directory
	Format string // "" or "auto": what the first line shows; else as docs/policy.md lists them
	Skip   bool   // leave out lines that cannot be read
	Pos    Pos    // where the policy names it
	Text   []byte // nil: not read

	table *listTable // what Text says; nil: not parsed
}

// Rules reports how many rules the list holds. Zero: it was not read.
func (f listFile) Rules() int {
	if f.table == nil {
		return 0
	}
	return f.table.Rules()
}

// Skipped reports how many lines were left out of it.
func (f listFile) Skipped() int {
	if f.table == nil {
		return 0
	}
	return f.table.Skipped()
}

// listTable is a parsed list file. Immutable, and shared by the policies of
// before and after a reload.
type listTable struct {
	*lists.List
	ports map[uint16]bool // that its rules list, as Policy.Ports wants them
	wide  []string        // names of rules that Warnings reports, at most maxProblems
}

// listFiles reads allow_file and deny_file: a path, a list of paths or, for what
// is denied, of mappings.
func (f *fileParser) listFiles(n *yaml.Node, where string, deny bool) (out []listFile) {
	if isNull(n) {
		return nil
	}
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		before := len(f.errs.list)
		file := listFile{Pos: f.pos(item)}
		path := func(v *yaml.Node) { file.Path, _ = f.text(v, where) }
		if item.Kind == yaml.MappingNode && deny && f.plain(item) {
			f.keys(item, where, map[string]func(*yaml.Node){
				"path":    path,
				"format":  func(v *yaml.Node) { file.Format = f.word(v, where+".format", lists.Names()) },
				"unknown": func(v *yaml.Node) { file.Skip = f.word(v, where+".unknown", []string{"error", "skip"}) == "skip" },
			})
		} else {
			path(item)
		}
		switch {
		case len(f.errs.list) > before:
			continue
		case file.Path == "" || strings.ContainsRune(file.Path, 0):
			f.errs.add(file.Pos, "write the path of a list, relative to this file", "%s names no file", where)
			continue
		case !filepath.IsAbs(file.Path):
			file.Path = filepath.Join(filepath.Dir(f.name), file.Path)
		}
		out = append(out, file)
	}
	return out
}

// word reads one of words.
func (f *fileParser) word(n *yaml.Node, where string, words []string) string {
	text, ok := f.text(n, where)
	for _, w := range words {
		if text == w {
			return w
		}
	}
	if ok {
		f.errs.add(f.pos(n), "write "+strings.Join(words, ", "), "%s %q is not known", where, text)
	}
	return ""
}

// ListFiles lists the paths of the list files that d names.
func (d *Document) ListFiles() (paths []string) {
	if d != nil {
		for _, f := range append(append([]listFile(nil), d.AllowFiles...), d.DenyFiles...) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// ReadLists reads and parses the list files that d names; [Compile] wants that
// done. read is os.ReadFile, and what it returns belongs to the policy from then on.
// Errors name the file and the line.
func (d *Document) ReadLists(read func(name string) ([]byte, error)) error {
	return d.ReadListsAgain(read, nil, nil)
}

// ReadListsAgain is ReadLists after a change of some files: lists of before, the
// policy in force, that say the same are shared. unchanged, if it is not nil,
// reports whether a file still has this SHA-256; it is not read then.
func (d *Document) ReadListsAgain(read func(name string) ([]byte, error), before *Policy, unchanged func(name string, sum [sha256.Size]byte) bool) error {
	var errs problems
	for _, l := range []struct {
		files []listFile
		deny  bool
	}{{d.AllowFiles, false}, {d.DenyFiles, true}} {
		for i := range l.files {
			f := &l.files[i]
			errs.merge(f.read(l.deny, read, before, unchanged))
		}
	}
	return errs.err()
}

func (f *listFile) read(deny bool, read func(string) ([]byte, error), before *Policy, unchanged func(string, [sha256.Size]byte) bool) (errs problems) {
	for l := range before.listed(deny) {
		if unchanged != nil && l.file == f.Path && l.asked == f.Format && l.skip == f.Skip && unchanged(f.Path, l.table.Sum()) {
			f.table = l.table
			return errs
		}
	}
	text, err := read(f.Path)
	if err != nil {
		errs.list = append(errs.list, fmt.Errorf("%s: %w", f.Pos, err))
		return errs
	}
	if text == nil {
		text = []byte{}
	}
	f.Text = text
	return f.parse(deny, before)
}

// parse makes the table of f.Text, or takes over one of before.
func (f *listFile) parse(deny bool, before *Policy) (errs problems) {
	format, ok := lists.ParseFormat(f.Format)
	switch {
	case f.Format == "" && !deny:
		format = lists.Rules
	case f.Format == "":
	case !ok:
		errs.add(f.Pos, "write "+strings.Join(lists.Names(), ", "), "format %q is not known", f.Format)
		return errs
	case !deny && (format != lists.Rules || f.Skip):
		errs.add(f.Pos, "write one rule a line", "an allow list holds rules, and nothing is left out of it")
		return errs
	}
	for l := range before.listed(deny) {
		if l.table.Same(f.Text, format, f.Skip) {
			f.table, f.Text = l.table, nil
			return errs
		}
	}
	t := &listTable{ports: make(map[uint16]bool)}
	parsed := 0
	list, found, more := lists.Read(f.Text, lists.Options{
		Format: format, Skip: f.Skip, Plain: names.Plain[[]byte],
		Broad: func(name string) bool {
			if !deny && len(t.wide) < maxProblems && suffix.Shared(name) {
				t.wide = append(t.wide, name)
			}
			return suffix.Public(name)
		},
		Parse: func(rule string) (string, lists.Scope, error) {
			name, scope, err := t.rule(rule, deny)
			if err == nil {
				parsed++
			}
			return name, scope, err
		},
	})
	for _, p := range found {
		pos := Pos{File: f.Path, Line: p.Line, Column: p.Column}
		if p.Err != nil {
			errs.addError(pos, p.Err)
		} else {
			errs.add(pos, p.Fix, "%s", p.What)
		}
	}
	errs.more += more
	if list == nil {
		return errs
	}
	if deny && list.Rules() == 0 {
		// Threat: a download fails and leaves an empty list, and what it denied is open
		// -> it is refused, and a reload keeps the one before. Left over: a list that was
		// cut off in the middle.
		errs.add(Pos{File: f.Path, Line: 1, Column: 1}, "put rules into it, or take it out of deny_file", "the deny list holds no rule")
	}
	if list.Rules() > parsed { // some are plain names
		grammar.WebPorts.Each(func(port uint16) { t.ports[port] = true })
	}
	t.List, f.table = list, t
	return errs
}

// rule reads a rule of a list that is more than a plain name.
func (t *listTable) rule(text string, deny bool) (name string, scope lists.Scope, err error) {
	p, err := grammar.Parse(text, deny)
	if err != nil || p.Raw || p.Path != nil || p.Scope == grammar.Addr {
		return "", 0, err
	}
	if !deny {
		p.Ports.Each(func(port uint16) { t.ports[port] = true })
	}
	return p.Name, inList(p.Scope), nil
}

// inList says a scope of names in a list's words.
func inList(s grammar.Scope) lists.Scope {
	switch s {
	case grammar.Exact:
		return lists.Apex
	case grammar.Below:
		return lists.Below
	case grammar.Tree:
		return lists.Apex | lists.Below
	case grammar.Addr:
	}
	return 0
}
