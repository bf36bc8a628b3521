package policy

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"

	"egressd/policy/internal/names"
)

// Implementation constant: shorter files take the ordinary way.
const longListBytes = 1 << 20

// longLists lifts runs of plain host names out of a long file, because a YAML
// node for each of a million lines costs more than all the rest. It reports
// the entries by section and the file with their lines left empty, so that all
// other positions stay as they are.
//
// A run is what YAML reads the same way in any case: after a line "allow:" or
// "deny:" at the left edge, lines of equal indentation that hold "- " and a
// canonical name with a letter in it and a dot.
//
// ok is false where a line of another indentation follows: it may continue the
// name before it.
func longLists(name string, data []byte) (rest []byte, lists map[string][]Entry, ok bool) {
	text := string(data)
	lists = make(map[string][]Entry)
	out := make([]byte, 0, len(data)/4)
	section, indent := "", -1
	for line := 1; text != ""; line++ {
		row, after, _ := strings.Cut(text, "\n")
		whole := text[:len(text)-len(after)]
		text = after
		row = strings.TrimSuffix(row, "\r")
		body := strings.TrimLeft(row, " ")
		in := len(row) - len(body)
		item, isItem := strings.CutPrefix(body, "- ")
		switch {
		case row == "allow:" || row == "deny:":
			section, indent = strings.TrimSuffix(row, ":"), -1
		case section == "" || body == "" || body[0] == '#':
		case isItem && (indent < 0 || in == indent) && listedName(item):
			indent = in
			if lists[section] == nil { // at most this many, as lines of a name have at least six bytes
				lists[section] = make([]Entry, 0, 1+strings.Count(text, "\n"))
			}
			lists[section] = append(lists[section], Entry{Text: item, Pos: Pos{File: name, Line: line, Column: in + 3}})
			whole = "\n"
		case isItem && indent < 0:
			indent = in
		case isItem && in == indent:
		case !isItem && in == 0:
			section = "" // the next key
		default:
			return nil, nil, false
		}
		out = append(out, whole...)
	}
	return out, lists, true
}

// listedName reports whether YAML, too, reads item as that string: a name with
// a dot whose last label begins with a letter is no number, date or keyword.
func listedName(item string) bool {
	i := strings.LastIndexByte(item, '.')
	return i > 0 && i+1 < len(item) && 'a' <= item[i+1] && item[i+1] <= 'z' && names.Plain(item)
}

// loadLong reads a long file the short way. It reports false where the rest of
// the file leaves any doubt that YAML would have read the runs as lists of
// rules; the file then takes the ordinary way, which also words the errors.
func (f *fileParser) loadLong(data []byte) (root *yaml.Node, ok bool) {
	rest, lists, ok := longLists(f.name, data)
	if !ok || bytes.IndexByte(data, '\t') >= 0 {
		return nil, false
	}
	quiet := &fileParser{name: f.name, doc: &Document{}}
	root, ok = quiet.load(rest)
	if !ok || root == nil || root.Kind != yaml.MappingNode || root.Style&yaml.FlowStyle != 0 || severalLines(root) {
		return nil, false
	}
	sections := make(map[string]int)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		sections[key.Value]++
		if len(lists[key.Value]) > 0 && !isNull(value) && (value.Kind != yaml.SequenceNode || value.Style&yaml.FlowStyle != 0) {
			return nil, false
		}
	}
	for section := range lists {
		if sections[section] != 1 {
			return nil, false
		}
	}
	f.lifted = lists
	return root, true
}

// severalLines reports whether any scalar spans lines: the lifted lines may
// then have been part of it.
func severalLines(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode && (n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || strings.Contains(n.Value, "\n")) {
		return true
	}
	for _, child := range n.Content {
		if severalLines(child) {
			return true
		}
	}
	return false
}
