package workspace

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
)

// importer makes a tree of objects that are there and of new contents.
type importer struct {
	from  map[string]object  // what the tree has already; may be nil
	new   map[string]content // what comes in its place; held in memory
	bytes int64              // of new
}

type content struct {
	mode string
	data []byte
}

// add puts new content at a path.
func (m *importer) add(name, mode string, data []byte) error {
	if m.bytes += int64(len(data)); m.bytes > maxNew {
		return fmt.Errorf("new and changed files have more than %d bytes: leave some out with .gitignore", int64(maxNew))
	}
	if m.new == nil {
		m.new = map[string]content{}
	}
	m.new[name] = content{mode, data}
	return nil
}

// tree makes the tree.
func (m *importer) tree(ctx context.Context, r *repo) (string, error) {
	var all bytes.Buffer
	all.WriteString("commit refs/made\ncommitter warrant <warrant@localhost> 0 +0000\ndata 0\ndeleteall\n")
	for _, name := range slices.Sorted(maps.Keys(m.from)) {
		if _, replaced := m.new[name]; !replaced {
			fmt.Fprintf(&all, "M %s %s %s\n", m.from[name].mode, m.from[name].name, quoted(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.new)) {
		c := m.new[name]
		fmt.Fprintf(&all, "M %s inline %s\ndata %d\n", c.mode, quoted(name), len(c.data))
		all.Write(c.data)
		all.WriteByte('\n')
	}
	all.WriteString("done\n")
	if _, err := r.git(ctx, all.Bytes(), "fast-import", "--quiet", "--done", "--force"); err != nil {
		return "", err
	}
	return r.git(ctx, nil, "rev-parse", "refs/made^{tree}")
}

// quoted is a path as git fast-import reads any.
func quoted(name string) string {
	b := []byte{'"'}
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, fmt.Sprintf(`\%03o`, c)...)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// diff is the diff between two trees, which git apply --binary takes.
func (r *repo) diff(ctx context.Context, from, to string) ([]byte, error) {
	return r.output(ctx, nil, "diff", "--binary", "--full-index", "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color",
		"--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", from, to)
}

// changed lists the paths in which two trees differ.
func changed(from, to map[string]object) []string {
	var names []string
	for name, o := range to {
		if from[name] != o {
			names = append(names, name)
		}
	}
	for name := range from {
		if to[name] == (object{}) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
