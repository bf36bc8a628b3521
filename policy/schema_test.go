package policy

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const schemaFile = "../docs/policy.schema.json"

func loadSchema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	data, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s, doc.(map[string]any)
}

// inSchema validates a policy file as an editor does: what YAML makes of it.
func inSchema(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(value)
}

// Every section has the keys that the parser knows, and no others.
func TestSchemaKeys(t *testing.T) {
	_, doc := loadSchema(t)
	mappings := 0
	var look func(where []string, node any)
	look = func(where []string, node any) {
		n, ok := node.(map[string]any)
		if !ok {
			return
		}
		if ref, ok := n["$ref"].(string); ok {
			look(where, doc["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")])
			return
		}
		if all, ok := n["oneOf"].([]any); ok {
			for _, one := range all {
				look(where, one)
			}
		}
		if items, ok := n["items"]; ok {
			look(append(where, "- "), items)
		}
		properties, ok := n["properties"].(map[string]any)
		if !ok {
			return
		}
		mappings++
		if got, want := slices.Sorted(maps.Keys(properties)), knownKeys(t, where); !slices.Equal(got, want) {
			t.Errorf("%v: the schema has the keys %v, and the parser %v", where, got, want)
		}
		for name, p := range properties {
			if p.(map[string]any)["description"] == nil {
				t.Errorf("%v %s has no description", where, name)
			}
			look(append(where, name+": "), p)
		}
	}
	look(nil, doc)
	if mappings < 7 {
		t.Errorf("only %d mappings were found", mappings)
	}
}

// knownKeys asks the parser which keys it knows at a place: it lists them when one is
// far from all of them.
func knownKeys(t *testing.T, where []string) []string {
	t.Helper()
	var text strings.Builder
	for i, step := range where {
		text.WriteString(step)
		if step != "- " {
			text.WriteString("\n" + strings.Repeat("  ", i+1))
		}
	}
	text.WriteString("qqqqqqqqqqqqqqqqqqqq: 1\n")
	_, err := ParseFile("p.yaml", []byte(text.String()))
	if err == nil {
		t.Fatalf("%q is read without an error", text.String())
	}
	for line := range strings.Lines(err.Error()) {
		if _, known, ok := strings.Cut(strings.TrimSpace(line), "known are "); ok && strings.Contains(line, "qqqq") {
			return strings.Split(known, ", ")
		}
	}
	t.Fatalf("%q: no list of keys in %v", text.String(), err)
	return nil
}

func TestSchemaPresets(t *testing.T) {
	_, doc := loadSchema(t)
	var got []string
	for _, v := range doc["properties"].(map[string]any)["presets"].(map[string]any)["items"].(map[string]any)["enum"].([]any) {
		got = append(got, v.(string))
	}
	if want := PresetNames(); !slices.Equal(got, want) {
		t.Errorf("the schema has the presets %v, and there are %v", got, want)
	}
}

// What is a policy for one is a policy for the other, for every policy in the tree and
// for what people get wrong about the form. Rules themselves are the parser's alone.
func TestSchemaAgrees(t *testing.T) {
	s, _ := loadSchema(t)
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			return skip(err, d)
		}
		if ext := filepath.Ext(path); ext != ".yaml" && ext != ".yml" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := ParseFile(path, text); err != nil {
			return nil // it is no policy, or a wrong one
		}
		files++
		if err := inSchema(t, s, text); err != nil {
			t.Errorf("%s: the parser takes it, and the schema does not: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 5 {
		t.Errorf("only %d policies were found", files)
	}
	for _, text := range []string{
		"allows: [a.test]", "allow: a.test", "allow: {a.test: 443}", "presets: [nmp]", "hosts: [a.test]", "hosts: {a.test: []}", "dns: {mode: fast}", "dns: {server: 1.1.1.1}",
		"secrets: [{env: A, header: B}]", "secrets: [{env: A, header: B, hosts: [a.test], value: x}]", "limits: {connections: 0}", "limits: {connections: many}", "limits: {speed: 1}",
		"files: {home: open}", "files: {wriet: [a]}", "audit: maybe", "upstream_proxy: {url: 'http://a.test:3128', by: x}", "deny_file: {path: a, format: csv}", "- a.test", "text",
	} {
		if _, err := ParseFile("p.yaml", []byte(text)); err == nil {
			t.Errorf("%s: the parser takes it", text)
		}
		if err := inSchema(t, s, []byte(text)); err == nil {
			t.Errorf("%s: the schema takes it", text)
		}
	}
}

// skip is what WalkDir is told of a directory that is not looked into.
func skip(err error, d fs.DirEntry) error {
	if err == nil && d.IsDir() {
		return filepath.SkipDir
	}
	return err
}
