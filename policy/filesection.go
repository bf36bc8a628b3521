package policy

import (
	"io"

	"go.yaml.in/yaml/v3"

	"egressd/policy/files"
)

// Implementation constant: a section that lists more is data, not a policy.
const maxFileRules = 4096

// files reads the files section.
func (f *fileParser) files(n *yaml.Node) {
	if isNull(n) {
		return
	}
	s := &f.doc.Files
	f.keys(n, "files", map[string]func(*yaml.Node){
		"write": func(v *yaml.Node) { s.Write = f.paths(v, "files.write") },
		"read":  func(v *yaml.Node) { s.Read = f.paths(v, "files.read") },
		"hide":  func(v *yaml.Node) { s.Hide = f.paths(v, "files.hide") },
		"home": func(v *yaml.Node) {
			text, ok := f.text(v, "files.home")
			if !ok {
				return
			}
			home, err := files.ParseHome(text)
			if err != nil {
				f.errs.add(f.pos(v), "write ro, rw or private", "files.home %q is not known", text)
			}
			s.Home = home
		},
	})
}

func (f *fileParser) paths(n *yaml.Node, where string) (rules []files.Rule) {
	for _, e := range f.list(n, where) {
		if err := files.Check(e.Text); err != nil {
			f.errs.add(e.Pos, "", "%s: %s", where, err)
			continue
		}
		rules = append(rules, files.Rule{Path: e.Text, At: e.Pos.String()})
	}
	return rules
}

// files joins the section of a document. Documents come from other places than
// files, too.
func (c *compiler) files(s files.Section) {
	c.p.files = c.p.files.Join(s)
	for _, list := range s.Lists() {
		for _, r := range list.Rules {
			if err := files.Check(r.Path); err != nil {
				c.errs.add(Pos{File: r.At}, "", "%s", err)
			}
		}
	}
	if s.Home > files.HomePrivate {
		c.errs.add(Pos{}, "write ro, rw or private", "files.home %d is not known", s.Home)
	}
	if n := len(c.p.files.Lines()); n > maxFileRules {
		c.errs.add(Pos{}, "name directories instead of every file", "the files section holds %d rules; at most %d are read", n, maxFileRules)
	}
}

// FileRules reports the files section. Of a policy under a ceiling it is its own
// section alone; Files also asks the ceiling.
func (p *Policy) FileRules() files.Section {
	if p == nil {
		return files.Section{}
	}
	return p.files.Join(files.Section{})
}

// Files applies the files section to a place. Under a ceiling that has a files
// section, the smaller access counts; one without says nothing about files. A
// nil or zero Policy has a nil Gate, which hides everything. Errors name the
// rule.
func (p *Policy) Files(at files.Place) (*files.Gate, error) {
	if p == nil || !p.loaded {
		return nil, nil
	}
	g, err := p.files.In(at)
	if err != nil {
		return nil, err
	}
	for c := p.ceiling; c != nil; c = c.ceiling {
		if c.files.IsZero() {
			continue
		}
		most, err := c.files.In(at)
		if err != nil {
			return nil, err
		}
		g = g.Under(most)
	}
	return g, nil
}

// fileLines spells the files section as policy text.
func (p *Policy) fileLines() (out []string) {
	for _, line := range p.files.Lines() {
		out = append(out, "files."+line)
	}
	return out
}

// hashFiles writes the files section into a digest. Paths may hold anything but
// a line's end, so no two sections look alike.
func hashFiles(w io.Writer, s files.Section) { writeSorted(w, "files", s.Lines()) }
