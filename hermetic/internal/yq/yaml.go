package yq

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"egressd/hermetic/internal/jq/lang"
	"egressd/hermetic/internal/jq/value"
)

// errYAML: more nodes than a document may become, which only aliases to
// aliases do.
var errYAML = errors.New("document contains excessive aliasing")

// expansion counts what a document becomes.
type expansion struct{ left, depth int }

// fromYAML makes a value of a node; e.left counts down how much it may become.
//
// Threat: a document whose aliases double on every line fills the memory, and
// one with an alias to what it stands in the stack -> every visited node counts,
// and how deep it is -> a large honest document has the same bound.
func fromYAML(n *yaml.Node, e *expansion) (any, error) {
	if e.left--; e.left < 0 || e.depth > value.Deepest {
		return nil, errYAML
	}
	e.depth++
	defer func() { e.depth-- }()
	switch n.Kind {
	case yaml.DocumentNode:
		return fromYAML(n.Content[0], e)
	case yaml.AliasNode:
		return fromYAML(n.Alias, e)
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, c := range n.Content {
			v, err := fromYAML(c, e)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case yaml.MappingNode:
		return mapping(n, e)
	}
	return scalar(n), nil
}

func mapping(n *yaml.Node, e *expansion) (any, error) {
	out := value.NewObject(len(n.Content) / 2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		v, err := fromYAML(n.Content[i+1], e)
		if err != nil {
			return nil, err
		}
		key := n.Content[i]
		if key.Tag != "!!merge" {
			k, err := fromYAML(key, e)
			if err != nil {
				return nil, err
			}
			out.Put(lang.Tostring(k), v)
			continue
		}
		sources, ok := v.([]any)
		if !ok {
			sources = []any{v}
		}
		for _, s := range sources {
			if o, ok := s.(*value.Object); ok {
				for _, k := range o.Keys() {
					if _, had := out.Get(k); !had {
						x, _ := o.Get(k)
						out.Put(k, x)
					}
				}
			}
		}
	}
	return out, nil
}

func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int":
		if v, ok := value.ParseNumber(n.Value); ok {
			return v
		}
		var i int64
		if n.Decode(&i) == nil {
			return float64(i)
		}
	case "!!float":
		var f float64
		if n.Decode(&f) == nil {
			return f
		}
	}
	return n.Value
}

// toYAML makes a node of a value. was is the node that was at its place in the
// document, nil: none; its comments stay, and its way of writing when the
// value is the same.
func toYAML(v any, was *yaml.Node) *yaml.Node {
	n := &yaml.Node{}
	switch v := v.(type) {
	case []any:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		for i, e := range v {
			n.Content = append(n.Content, toYAML(e, elementOf(was, i)))
		}
	case *value.Object:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if v.Len() == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			oldKey, old := entryOf(was, k)
			key := toYAML(k, oldKey)
			n.Content = append(n.Content, key, toYAML(e, old))
		}
	default:
		n = scalarNode(v)
	}
	if was == nil || was.Kind == yaml.AliasNode {
		return n
	}
	n.HeadComment, n.LineComment, n.FootComment = was.HeadComment, was.LineComment, was.FootComment
	switch {
	case was.Kind != n.Kind:
	case n.Kind != yaml.ScalarNode:
		n.Style = was.Style
	case value.Equal(scalar(was), v) || scalar(was) == nil && v == nil:
		n.Value, n.Style, n.Tag = was.Value, was.Style, was.Tag
	case was.ShortTag() == "!!str" && n.Tag == "!!str":
		n.Style = was.Style
	}
	return n
}

func elementOf(n *yaml.Node, i int) *yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
		return nil
	}
	return n.Content[i]
}

func entryOf(n *yaml.Node, key string) (k, v *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func scalarNode(v any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := v.(type) {
	case nil:
		n.Tag, n.Value = "!!null", "null"
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(v)
	case string:
		n.SetString(v)
	default:
		f, _ := value.Number(v)
		n.Tag, n.Value = "!!float", value.FormatNumber(v)
		switch {
		case math.IsNaN(f):
			n.Value = ".nan"
		case math.IsInf(f, 0):
			n.Value = strings.TrimPrefix(fmt.Sprintf("%+d.inf", int(math.Copysign(1, f))), "+1")
			n.Value = strings.Replace(n.Value, "-1", "-", 1)
		case f == math.Trunc(f):
			n.Tag = "!!int"
		}
	}
	return n
}

// plainYAML takes all styles and comments away, for -P.
func plainYAML(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.SetString(n.Value)
	}
	if (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		plainYAML(c)
	}
}
