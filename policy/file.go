package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Implementation constant: a million-domain list is about 30 MiB.
const maxFileBytes = 64 << 20

// ParseFile reads a policy file (YAML, strict): unknown and duplicate keys,
// wrong types, anchors, aliases, merge keys, tags and further documents are
// errors. name is used in positions. An empty file is a policy that denies
// everything. Rules are checked here too, so that a file that parses compiles,
// unless its rules contradict each other. Errors list every problem as
// file:line:column: what: how to fix it.
func ParseFile(name string, data []byte) (*Document, error) {
	return parseFile(name, data, len(data) >= longListBytes)
}

func parseFile(name string, data []byte, long bool) (*Document, error) {
	f := &fileParser{name: name, doc: &Document{}}
	if len(data) > maxFileBytes {
		f.errs.add(Pos{File: name}, "split it, or list suffixes (*.example.com) instead of every host",
			"file is %d bytes; at most %d are read", len(data), maxFileBytes)
		return nil, f.errs.err()
	}
	var root *yaml.Node
	ok := false
	if long {
		root, ok = f.loadLong(data)
	}
	if !ok {
		root, ok = f.load(data)
	}
	if ok && root != nil {
		f.root(root)
	}
	f.errs.sort()
	if err := f.errs.err(); err != nil {
		return nil, err
	}
	return f.doc, nil
}

type fileParser struct {
	name string
	doc  *Document
	errs problems

	lifted map[string][]Entry // lines of long lists that never were YAML nodes
}

func (f *fileParser) pos(n *yaml.Node) Pos { return Pos{File: f.name, Line: n.Line, Column: n.Column} }

// load reads the one YAML document; nil for an empty file.
func (f *fileParser) load(data []byte) (*yaml.Node, bool) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var root yaml.Node
	switch err := dec.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, true
	case err != nil:
		f.yamlError(err, data)
		return nil, false
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		f.yamlError(err, data)
		return nil, false
	default:
		f.errs.add(f.pos(&second), "keep one document a file; give several --policy files", "a second YAML document begins here")
		return nil, false
	}
	if len(root.Content) != 1 {
		return nil, true
	}
	top := root.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, true
	}
	return top, true
}

var (
	yamlLine = regexp.MustCompile(`line (\d+): `)

	// unquoted finds list items and values that YAML reads as an alias (*) or as
	// a list ([) although a rule was meant.
	unquoted = regexp.MustCompile(`(?m)^[ ]*(?:- +|[a-z_]+: +)(\*[.a-zA-Z0-9][^\s#]*|\*[ ]+https://\S*|\* *$|\*\*/\S*|\[[0-9a-fA-F:.]+(?:/\d+)?\](?:/\d+)?:\S+)`)
)

// yamlError turns the YAML package's own error into a Problem. What nearly
// every user meets first, a rule that needs quotes, is shown in its place.
func (f *fileParser) yamlError(err error, data []byte) {
	if at := unquoted.FindSubmatchIndex(data); at != nil {
		before := data[:at[2]]
		pos := Pos{
			File:   f.name,
			Line:   1 + bytes.Count(before, []byte("\n")),
			Column: at[2] - bytes.LastIndexByte(before, '\n'),
		}
		text := string(data[at[2]:at[3]])
		f.errs.add(pos, fmt.Sprintf("put it in quotes: %q", text), "%s means something else in YAML (%q begins an alias or a list)", text, text[:1])
		return
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	pos := Pos{File: f.name, Line: 1, Column: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			pos.Line = n
		}
		text = strings.Replace(text, m[0], "", 1)
	}
	f.errs.add(pos, "check the indentation (spaces only), brackets and quotes there and in the line before", "this is not YAML: %s", text)
}

// keys walks a mapping: every key must be known and stand there once.
func (f *fileParser) keys(n *yaml.Node, where string, known map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		f.errs.add(f.pos(n), "write key: value lines", "%s is %s, not a mapping", where, kindName(n))
		return
	}
	names := slices.Sorted(maps.Keys(known))
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !f.plain(key) {
			continue
		}
		if line, dup := seen[key.Value]; dup {
			f.errs.add(f.pos(key), "join the two", "key %q stands twice in %s, first in line %d", key.Value, where, line)
			continue
		}
		seen[key.Value] = key.Line
		read, ok := known[key.Value]
		if !ok {
			f.errs.add(f.pos(key), suggestWord(key.Value, names), "%s has no key %q", where, key.Value)
			continue
		}
		if isNull(value) || f.plain(value) {
			read(value)
		}
	}
}

// plain refuses what YAML offers beyond plain text: anchors, aliases, tags.
func (f *fileParser) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		f.errs.add(f.pos(n), `write the value out; a host pattern goes in quotes: "*.example.com"`, "aliases (*%s) are not accepted", n.Value)
	case n.Anchor != "":
		f.errs.add(f.pos(n), "write the value out where it is used", "anchors (&%s) are not accepted", n.Anchor)
	case n.Tag == "!!merge":
		f.errs.add(f.pos(n), "write the values out", "merge keys (<<) are not accepted")
	case n.Style&yaml.TaggedStyle != 0:
		f.errs.add(f.pos(n), "leave the tag out", "tags (%s) are not accepted", n.Tag)
	default:
		return true
	}
	return false
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Anchor == ""
}

// text reads one scalar as written, whatever type YAML makes of it.
func (f *fileParser) text(n *yaml.Node, where string) (string, bool) {
	if !f.plain(n) {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || isNull(n) {
		fix := "write a value, or remove the line"
		if n.Kind == yaml.SequenceNode {
			fix = `write one value; text that begins with [ goes in quotes: "[2001:db8::1]:443"`
		}
		f.errs.add(f.pos(n), fix, "%s holds %s", where, kindName(n))
		return "", false
	}
	return n.Value, true
}

// list reads a sequence of scalars.
func (f *fileParser) list(n *yaml.Node, where string) []Entry {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		f.errs.add(f.pos(n), "write one \"- value\" line each", "%s is %s, not a list", where, kindName(n))
		return nil
	}
	out := make([]Entry, 0, len(n.Content))
	for _, item := range n.Content {
		if text, ok := f.text(item, where); ok {
			out = append(out, Entry{Text: text, Pos: f.pos(item)})
		}
	}
	return out
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
		if isNull(n) {
			return "nothing"
		}
		return fmt.Sprintf("the value %q", n.Value)
	}
	return "nothing"
}
