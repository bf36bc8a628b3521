//go:build system

package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"egressd/policy"
)

// checkRules compiles the rules of a table: what stands before a wide gap.
func checkRules(text string) error {
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		rule, _, _ := strings.Cut(strings.TrimSpace(line), "   ")
		if rule == "" {
			continue
		}
		if _, err := policy.Compile(&policy.Document{Allow: []policy.Entry{{Text: rule}}}); err != nil {
			return fmt.Errorf("rule %q: %w", rule, err)
		}
		n++
	}
	if n == 0 {
		return errors.New("no rule in a block of rules")
	}
	return nil
}

// checkBlock checks a block of yaml, json or ini as what it is. One that is
// nothing we know is an error.
func checkBlock(b block, s *shell) error {
	switch b.lang {
	case "yaml":
		return checkYAML(b, s)
	case "json":
		if strings.Contains(b.text, `"mcpServers"`) {
			return checkMCP(b.text, s)
		}
		return checkEvents(b.text)
	case "ini":
		return checkINI(b, s)
	}
	return fmt.Errorf("%s: nobody checks this", b.lang) // unreachable
}

// checkEvents holds each line against the schema of events.
func checkEvents(text string) error {
	schema, err := eventSchema()
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			return fmt.Errorf("line %d is no event of the schema: %w", i+1, err)
		}
	}
	return nil
}

// checkMCP starts each server of a block as an agent does, and wants an answer to its first message.
func checkMCP(text string, s *shell) error {
	var doc struct {
		Servers map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		} `json:"mcpServers"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return fmt.Errorf("no configuration of MCP servers: %w", err)
	}
	if len(doc.Servers) == 0 {
		return errors.New("no server in mcpServers")
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	for name, c := range doc.Servers {
		line := fmt.Sprintf("printf '%%s\\n' '%s' | %s | grep -F serverInfo", hello, strings.Join(append([]string{c.Command}, c.Args...), " "))
		if err := s.check(line); err != nil {
			return fmt.Errorf("server %s: %w", name, err)
		}
	}
	return nil
}

func eventSchema() (*jsonschema.Schema, error) {
	data, err := os.ReadFile(filepath.Join(root, "docs/event.schema.json"))
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("event.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("event.schema.json")
}

// checkINI checks units with systemd-analyze, and configurations with the
// program that reads them.
func checkINI(b block, s *shell) error {
	name := b.fileName()
	switch {
	case name == "":
		return errors.New("an ini block needs a file name in its first line, such as # /etc/systemd/system/x.service")
	case strings.HasPrefix(name, "/etc/logrotate.d/"):
		return s.check("logrotate -d " + name + " 2>&1 | { ! grep -i error; }")
	case strings.HasSuffix(filepath.Dir(name), ".d"):
		return s.check("out=$(systemd-analyze verify --man=no " + strings.TrimSuffix(filepath.Base(filepath.Dir(name)), ".d") + " 2>&1) && test -z \"$out\" || { echo \"$out\"; false; }")
	}
	return s.check("out=$(systemd-analyze verify --man=no " + name + " 2>&1) && test -z \"$out\" || { echo \"$out\"; false; }")
}

// check runs a command of the test's own in the world.
func (s *shell) check(line string) error {
	code, out, err := s.run(command{text: line})
	switch {
	case err != nil:
		return err
	case code != 0:
		return fmt.Errorf("%s\nexit code %d:\n%s", line, code, tail(out))
	}
	return nil
}

// kinds are what a yaml block may be, by a key that only they have.
var kinds = []struct {
	key   string
	check func(b block, docs []map[string]any, s *shell) error
}{
	{"apiVersion", checkManifests},
	{"services", checkCompose},
	{"jobs", checkWorkflow},
	{"groups", checkAlerts},
	{"allow_file", checkListed},
	{"allow", checkPolicy},
	{"deny", checkPolicy},
	{"presets", checkPolicy},
	{"limits", checkPolicy},
}

// checkYAML finds out what the block is and has it checked.
func checkYAML(b block, s *shell) error {
	var docs []map[string]any
	var steps []any
	if err := yaml.Unmarshal([]byte(b.text), &steps); err == nil && len(steps) > 0 {
		return checkSteps(b, s)
	}
	for dec := yaml.NewDecoder(strings.NewReader(b.text)); ; {
		var doc map[string]any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("no yaml: %w", err)
		}
		docs = append(docs, doc)
	}
	for _, k := range kinds {
		for _, d := range docs {
			if _, ok := d[k.key]; ok {
				return k.check(b, docs, s)
			}
		}
	}
	if strings.HasSuffix(b.fileName(), "values.yaml") {
		return checkValues(b, docs, s)
	}
	return fmt.Errorf("nobody knows what this is; it may be %v", kindNames())
}

func kindNames() []string {
	names := []string{"a values.yaml", "a list of steps"}
	for _, k := range kinds {
		names = append(names, "something with "+k.key)
	}
	return names
}

// checkPolicy has our own program read a policy.
func checkPolicy(b block, _ []map[string]any, s *shell) error {
	file := filepath.Join(s.dir, "log", fmt.Sprintf("%d-policy.yaml", s.n))
	if err := os.WriteFile(file, []byte(b.text), 0o644); err != nil {
		return err
	}
	return s.check("egressd check " + file)
}

// checkListed is checkPolicy for one that names list files, which are made.
func checkListed(b block, docs []map[string]any, s *shell) error {
	for name, text := range map[string]string{"allowed.txt": "api.example.com\n", "ads.txt": "0.0.0.0 ads.example.com\n", "more.txt": "||ads.example.net^\n@@||x^\n"} {
		if err := os.WriteFile(filepath.Join(s.dir, "log", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return checkPolicy(b, docs, s)
}

// checkCompose has Docker Compose read a file on top of the shipped one.
func checkCompose(b block, _ []map[string]any, s *shell) error {
	name := b.fileName()
	if name == "" {
		return errors.New("a Compose file needs a name in its first line")
	}
	return s.check("docker compose -f compose.yaml -f " + name + " config -q")
}

// checkManifests holds manifests against the schemas of Kubernetes' own API.
func checkManifests(b block, _ []map[string]any, s *shell) error {
	return s.checkWith(b.text, "manifest.yaml", "kubeconform -strict -schema-location deploy/validate/schemas/{{.ResourceKind}}{{.KindSuffix}}.json")
}

// checkValues renders the chart with the values of a block.
func checkValues(b block, _ []map[string]any, s *shell) error {
	return s.checkWith(b.text, "values.yaml", "helm template egressd deploy/helm/egressd -f")
}

// checkAlerts holds the metrics that rules name against those that there are.
func checkAlerts(b block, _ []map[string]any, _ *shell) error {
	known, err := metricNames()
	if err != nil {
		return err
	}
	names := metricName.FindAllString(b.text, -1)
	if len(names) == 0 {
		return errors.New("rules without a metric of ours")
	}
	for _, name := range names {
		if !known[baseMetric(name)] {
			return fmt.Errorf("there is no metric %s", name)
		}
	}
	return nil
}

// checkWith writes text to a file and runs a command on it in the world.
func (s *shell) checkWith(text, name, argv string) error {
	file := filepath.Join(s.dir, "log", fmt.Sprintf("check-%d-%s", s.n, name))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	return s.check(argv + " " + file)
}
