package yq

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
	"go.yaml.in/yaml/v3"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/jq"
	"egressd/hermetic/internal/jq/lang"
	"egressd/hermetic/internal/jq/value"
)

const yqUsage = `[eval|eval-all] [OPTIONS] EXPRESSION [FILE...]

YAML and JSON by the jq language: expressions are those of this shell's jq, with
the options of mikefarah's yq. Comments and key order stay where the result has
the place they were at. What only that yq has (anchor, style, tag and comment
operators, load, format xml, csv, props, toml) is not here.

  -i            change the file in place        -n   null input
  -o, -p FMT    output and input: yaml or json  -I N indentation
  -P            plain style                     -r   strings as they are (default)
  -r=false      strings quoted as YAML needs    -e   status 1 for null and false
  -N            no --- between documents        -s   (not here: split)`

type yqWant struct {
	json, jsonIn, inPlace, null, pretty, exit, noSep, all bool
	quoted                                                bool // -r=false
	indent                                                int
	expression                                            string
	files                                                 []string

	m       *lang.Machine
	query   *gojq.Query
	matched bool
	printed bool
}

func yq(w *gnu.Work) {
	w.Usage = 1
	y := &yqWant{indent: 2}
	if !y.options(w) {
		return
	}
	q, err := gojq.Parse(y.expression)
	if err == nil {
		err = jq.TooNested(y.expression)
	}
	if err != nil {
		w.Die(1, "Error: bad expression: %s", err)
		return
	}
	y.query = q
	p := &jq.Program{Work: w, In: &jq.Source{W: w, Opts: &jq.JqOptions{}}}
	y.m = &lang.Machine{Ctx: w.Ctx, Budget: w.Budget, Source: y.expression, Gojq: map[string]*gojq.Code{}, Host: p.Host()}
	y.m.Host.Input = func() (any, error) { return nil, io.EOF }
	if err := y.m.Load(); err != nil {
		w.Die(1, "Error: %s", err)
		return
	}
	y.m.Natives["strenv/1"] = &lang.Function{Native: y.environment(false)}
	y.m.Natives["env/1"] = &lang.Function{Native: y.environment(true)}
	if y.null {
		y.document(w, w.Out, nil, "")
	}
	if len(y.files) == 0 && !y.null {
		y.files = []string{"-"}
	}
	for _, name := range y.files {
		if !y.File(w, name) {
			return
		}
	}
	if y.exit && !y.matched && w.Status == 0 {
		w.Die(1, "Error: no matches found")
	}
}

// environment is strenv(NAME) and env(NAME), which reads YAML.
func (y *yqWant) environment(parse bool) lang.Filter {
	return func(m *lang.Machine, _ *lang.Scope, args []*gojq.Query, in lang.Item, out lang.Emit) error {
		t := args[0].Term
		if t == nil || t.Func == nil {
			return lang.Failf("a name of a variable is needed")
		}
		v, ok := m.Host.Env.Get(t.Func.Name)
		if !ok {
			return lang.Failf("Value for env variable '%s' not provided in env()", t.Func.Name)
		}
		if parse {
			var n yaml.Node
			if err := yaml.Unmarshal([]byte(v.(string)), &n); err == nil && n.Kind != 0 {
				x, err := fromYAML(&n, &expansion{left: 10000})
				if err != nil {
					return err
				}
				v = x
			}
		}
		return out(in.Computed(v))
	}
}

func (y *yqWant) options(w *gnu.Work) bool {
	if len(w.Args) > 1 {
		switch w.Args[1] {
		case "e", "eval", "ea", "eval-all":
			y.all = strings.HasPrefix(w.Args[1], "ea") || w.Args[1] == "eval-all"
			w.Args = append([]string{w.Args[0]}, w.Args[2:]...)
		}
	}
	sets, operands, ok := w.Options(yqUsage, "i,inplace n,null-input o:,output-format: p:,input-format: I:,indent: P,prettyPrint r::,unwrapScalar:: e,exit-status N,no-doc M,no-colors C,colors j,tojson c,compact-output ,expression: ,from-file:")
	if !ok {
		return false
	}
	given := false
	for _, o := range sets {
		value := strings.TrimPrefix(o.Value, "=")
		switch o.Name {
		case "inplace":
			y.inPlace = true
		case "null-input":
			y.null = true
		case "output-format", "input-format":
			json := value == "json" || value == "j"
			if !json && value != "yaml" && value != "y" && value != "auto" && value != "a" {
				w.Die(1, "Error: format '%s' is not supported here", value)
				return false
			}
			if o.Name[0] == 'o' {
				y.json = json
			} else {
				y.jsonIn = json
			}
		case "tojson":
			y.json = true
		case "compact-output":
			y.json, y.indent = true, 0
		case "indent":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > 16 {
				w.Die(1, "Error: invalid indentation '%s'", value)
				return false
			}
			y.indent = n
		case "prettyPrint":
			y.pretty = true
		case "unwrapScalar":
			y.quoted = value == "false"
		case "exit-status":
			y.exit = true
		case "no-doc":
			y.noSep = true
		case "expression":
			y.expression, given = value, true
		case "from-file":
			text, ok := (&jq.JqOptions{}).File(w, value)
			if !ok {
				return false
			}
			y.expression, given = text, true
		}
	}
	if !given && len(operands) > 0 {
		y.expression, operands = operands[0], operands[1:]
		// One operand that is a file is the file.
		if _, err := w.FS.Stat(w.Path(y.expression)); err == nil && len(operands) == 0 && y.expression != "." {
			operands, y.expression = []string{y.expression}, "."
		}
	}
	if y.expression == "" {
		y.expression = "."
	}
	y.files = operands
	if y.inPlace && (len(operands) == 0 || y.null) {
		w.Die(1, "Error: write in place flag only applicable when giving an expression and at least one file")
		return false
	}
	return true
}

// File runs the expression on every document of a file.
func (y *yqWant) File(w *gnu.Work, name string) bool {
	r, err := w.Open(name)
	if err != nil {
		w.Die(1, "Error: open %s: %s", name, strings.ToLower(command.Reason(err)))
		return false
	}
	text, err := w.All(r)
	_ = r.Close()
	if err != nil {
		w.Die(1, "Error: %s: %s", name, command.Reason(err))
		return false
	}
	var out io.Writer = w.Out
	var held bytes.Buffer
	if y.inPlace {
		out, y.printed = &held, false
	}
	if !y.documents(w, out, text, name) {
		return false
	}
	if !y.inPlace {
		return true
	}
	f, err := w.Create(name, false)
	if err == nil {
		_, err = f.Write(held.Bytes())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.Die(1, "Error: %s: %s", name, command.Reason(err))
	}
	return err == nil
}

func (y *yqWant) documents(w *gnu.Work, out io.Writer, text []byte, name string) bool {
	if len(text) > 16<<20 {
		w.Die(1, "Error: %s: file is too large here", name)
		return false
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	for n := 0; w.Ctx.Err() == nil; n++ {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return n > 0 || y.document(w, out, nil, name)
		}
		if err != nil {
			w.Die(1, "Error: bad file '%s': %s", name, err)
			return false
		}
		if !y.document(w, out, &doc, name) {
			return false
		}
	}
	return false
}

// document runs the expression on one document; nil: on null.
func (y *yqWant) document(w *gnu.Work, out io.Writer, doc *yaml.Node, name string) bool {
	var v any
	if doc != nil {
		var err error
		if v, err = fromYAML(doc, &expansion{left: 2_000_000}); err != nil {
			w.Die(1, "Error: bad file '%s': %s", name, err)
			return false
		}
	}
	var results []any
	err := y.m.Eval(y.query, nil, lang.Item{V: v}, func(x lang.Item) error {
		results = append(results, x.V)
		return nil
	})
	if err != nil {
		if w.Ctx.Err() == nil {
			w.Die(1, "Error: %s", err)
		}
		return false
	}
	if len(results) > 0 && y.printed && !y.json && !y.noSep {
		_, _ = io.WriteString(out, "---\n")
	}
	for _, x := range results {
		y.printed = true
		y.matched = y.matched || value.Truthy(x)
		var was *yaml.Node
		if doc != nil && len(results) == 1 && value.Rank(x) == value.Rank(v) {
			was = doc.Content[0]
		}
		if err := y.write(out, x, was, doc); err != nil {
			return false
		}
	}
	return true
}

func (y *yqWant) write(out io.Writer, v any, was, doc *yaml.Node) error {
	if y.json {
		p := value.Printer{Indent: strings.Repeat(" ", y.indent)}
		p.Value(v, 0)
		_, err := out.Write(append(p.B, '\n'))
		return err
	}
	switch v.(type) {
	case []any, *value.Object:
	default:
		if s, ok := v.(string); ok && !y.quoted || !ok {
			_, err := io.WriteString(out, tostringYAML(v, s)+"\n")
			return err
		}
	}
	n := toYAML(v, was)
	if y.pretty || y.jsonIn {
		plainYAML(n)
	}
	if was != nil {
		n = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{n}, HeadComment: doc.HeadComment, FootComment: doc.FootComment}
	}
	e := yaml.NewEncoder(out)
	e.SetIndent(max(2, y.indent))
	return errors.Join(e.Encode(n), e.Close())
}

func tostringYAML(v any, s string) string {
	if _, ok := v.(string); ok {
		return s
	}
	return scalarNode(v).Value
}
