package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"egressd/event"
	"egressd/policy"
	"egressd/policy/room"
)

// shown is what a daemon shows: the labels of every metric, and the values of
// those labels whose values are a closed list.
type shown struct {
	labels map[string][]string
	values map[string][]string
}

// everything reports what is shown once every series of ours exists.
func everything(t *testing.T) shown {
	t.Helper()
	m := full(t)
	families, err := m.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	s := shown{labels: map[string][]string{"up": nil}, values: map[string][]string{
		"verdict":   {event.Allowed.String(), event.Blocked.String()},
		"direction": {"in", "out"}, "action": {"allow", "deny"},
		"result": {loaded, rejected, sessionWord(0), sessionWord(1), sessionWord(2)},
	}}
	for i := range doorCount {
		s.values["door"] = append(s.values["door"], word(i, firstDoor, lastDoor))
	}
	for i := range reasonCount {
		s.values["reason"] = append(s.values["reason"], word(i, firstReason, lastReason))
	}
	for i := range rcodeCount {
		s.values["rcode"] = append(s.values["rcode"], word(i, firstRCode, lastRCode))
	}
	for limit := range limitsInForce(policy.Limits{}, room.Room{}) {
		s.values["limit"] = append(s.values["limit"], limit)
	}
	for _, f := range families {
		var labels []string
		for _, metric := range f.GetMetric() {
			for _, l := range metric.GetLabel() {
				labels = append(labels, l.GetName())
			}
		}
		s.labels[f.GetName()] = labels
		if f.GetType().String() == "HISTOGRAM" {
			s.labels[f.GetName()+"_bucket"] = append(slices.Clone(labels), "le")
			s.labels[f.GetName()+"_sum"] = labels
			s.labels[f.GetName()+"_count"] = labels
		}
	}
	return s
}

// What Prometheus itself adds to every series.
var targetLabels = []string{"job", "instance", "namespace", "pod", "release"}

var (
	metricWord = regexp.MustCompile(`\b(?:(?:egressd|process|go|promhttp)_[a-z0-9_]+|up)\b(\{[^}]*\})?`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`\b(?:by|without|ignoring|on)\s*\(([^)]*)\)`)
)

// check reports what in a PromQL expression this program never shows.
func (s shown) check(expr string) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	found := metricWord.FindAllString(expr, -1)
	if len(found) == 0 {
		bad("no metric at all")
	}
	for _, use := range found {
		name, braces, _ := strings.Cut(use, "{")
		labels, ok := s.labels[name]
		if !ok {
			bad("there is no metric %s", name)
			continue
		}
		for _, m := range matcher.FindAllStringSubmatch(braces, -1) {
			label, value := m[1], m[3]
			if !slices.Contains(labels, label) && !slices.Contains(targetLabels, label) {
				bad("%s has no label %s", name, label)
			}
			closed, ok := s.values[label]
			if !ok || strings.HasPrefix(value, "$") {
				continue
			}
			for _, v := range strings.Split(value, "|") {
				if !slices.Contains(closed, v) {
					bad("%s is never %s=%q", name, label, v)
				}
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, label := range strings.Split(g[1], ",") {
			label = strings.TrimSpace(label)
			known := slices.Contains(targetLabels, label) || label == "le"
			for _, use := range found {
				name, _, _ := strings.Cut(use, "{")
				known = known || slices.Contains(s.labels[name], label)
			}
			if !known {
				bad("nothing has the label %s", label)
			}
		}
	}
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") {
		bad("unbalanced")
	}
	return problems
}

// The check finds what it is for.
func TestCheckFinds(t *testing.T) {
	s := everything(t)
	for _, expr := range []string{
		`egressd_no_such_total`, `sum(rate(egressd_decisions_total[5m])`, `egressd_decisions_total{host="x"}`, `egressd_decisions_total{reason="typo"}`,
		`egressd_decisions_total{reason=~"allowed|typo"}`, `sum by (host) (egressd_ready)`, `1 + 1`, `egressd_flow_duration_seconds_buckets`,
	} {
		if len(s.check(expr)) == 0 {
			t.Errorf("%s is found good", expr)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAlertRules(t *testing.T) {
	s := everything(t)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(read(t, "deploy/prometheus/egressd.rules.yaml")))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || seen[r.Alert] || !strings.HasPrefix(r.Alert, "Egressd") {
				t.Errorf("%q is no name of one alert", r.Alert)
			}
			seen[r.Alert] = true
			for _, p := range s.check(r.Expr) {
				t.Errorf("%s: %s", r.Alert, p)
			}
			if !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) || r.Annotations["summary"] == "" {
				t.Errorf("%s has no severity or no summary", r.Alert)
			}
			if text := r.Annotations["summary"] + r.Annotations["description"]; strings.Count(text, "{{") != strings.Count(text, "}}") {
				t.Errorf("%s: unbalanced template", r.Alert)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d alerts", len(seen))
	}
}

// panel is what is looked at of a panel of a dashboard.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, RefID string }
}

func TestDashboard(t *testing.T) {
	s := everything(t)
	var board struct {
		UID, Title string
		Panels     []panel
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Annotations struct {
			List []struct{ Expr string }
		}
	}
	text := read(t, "deploy/grafana/egressd.json")
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var exprs []string
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range board.Panels {
		if p.Title == "" || ids[p.ID] {
			t.Errorf("panel %d %q has no title, or an id of another", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %s, or beyond the edge", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			exprs = append(exprs, target.Expr)
		}
	}
	variables := []string{"__rate_interval", "__interval", "__range", "__all"}
	for _, v := range board.Templating.List {
		variables = append(variables, v.Name)
		if v.Type == "query" {
			exprs = append(exprs, v.Definition)
		}
	}
	for _, a := range board.Annotations.List {
		exprs = append(exprs, a.Expr)
	}
	for _, expr := range exprs {
		for _, p := range s.check(expr) {
			t.Errorf("%s: %s", expr, p)
		}
	}
	for _, use := range regexp.MustCompile(`\$\{?([a-z_]+)`).FindAllSubmatch(text, -1) {
		if !slices.Contains(variables, string(use[1])) {
			t.Errorf("there is no variable $%s", use[1])
		}
	}
	if len(exprs) < 20 {
		t.Errorf("only %d queries", len(exprs))
	}
}

// Every metric of ours is described in the manual, and only those.
func TestManual(t *testing.T) {
	s := everything(t)
	manual := string(read(t, "docs/metrics.md"))
	for name, labels := range s.labels {
		if !strings.HasPrefix(name, namespace+"_") || strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count") {
			continue
		}
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\|.*$").FindString(manual)
		if row == "" {
			t.Errorf("docs/metrics.md has no row for %s", name)
		}
		for _, l := range labels {
			if !strings.Contains(row, "`"+l+"`") {
				t.Errorf("docs/metrics.md does not name the label %s of %s", l, name)
			}
		}
	}
	for _, use := range regexp.MustCompile("(?m)^\\| `([a-z_]+)`").FindAllStringSubmatch(manual, -1) {
		if _, ok := s.labels[use[1]]; !ok && strings.HasPrefix(use[1], namespace+"_") {
			t.Errorf("docs/metrics.md describes %s, which is gone", use[1])
		}
	}
	for _, word := range slices.Concat(s.values["reason"], s.values["door"], s.values["limit"]) {
		if !strings.Contains(manual, "`"+word+"`") {
			t.Errorf("docs/metrics.md does not name %s", word)
		}
	}
}

// Every alert is tried by promtool, firing and not: see TestAlertsFire.
func TestEveryAlertIsTried(t *testing.T) {
	var rules struct {
		Groups []struct{ Rules []struct{ Alert string } }
	}
	var tests struct {
		Tests []struct {
			Rules []struct {
				Alert  string `yaml:"alertname"`
				Alerts []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	for name, into := range map[string]any{"egressd.rules.yaml": &rules, "egressd.test.yaml": &tests} {
		data, err := os.ReadFile(filepath.Join("../../../deploy/prometheus", name))
		if err == nil {
			err = yaml.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fires, rests := make(map[string]bool), make(map[string]bool)
	for _, test := range tests.Tests {
		for _, r := range test.Rules {
			if len(r.Alerts) > 0 {
				fires[r.Alert] = true
			} else {
				rests[r.Alert] = true
			}
		}
	}
	n := 0
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if n++; !fires[r.Alert] || !rests[r.Alert] {
				t.Errorf("%s: tried when it fires: %t, when it does not: %t", r.Alert, fires[r.Alert], rests[r.Alert])
			}
		}
	}
	if n < 17 {
		t.Errorf("%d alerts", n)
	}
}
