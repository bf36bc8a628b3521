package docs

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"egressd/event"
	"egressd/internal/daemon/metrics"
	"egressd/policy"
)

const root = "../.."

// metricName finds metrics of ours in any text.
var metricName = regexp.MustCompile(`\begressd_[a-z][a-z0-9_]*[a-z0-9]\b`)

// baseMetric strips what a histogram adds to its name.
func baseMetric(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && strings.HasSuffix(base, "_seconds") {
			return base
		}
	}
	return name
}

// metricNames lists the metrics of docs/metrics.md, which TestMetrics holds
// against the program.
func metricNames() (map[string]bool, error) {
	text, err := readDoc("metrics.md")
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, row := range tableRow.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(row[1], "egressd_") {
			out[row[1]] = true
		}
	}
	return out, nil
}

// tableRow is a row of a table whose first cell is code.
var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$")

func readDoc(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, "docs", name))
	return string(data), err
}

// doc reads a page of docs, or the part of it below a heading.
func doc(t *testing.T, name, heading string) string {
	t.Helper()
	text, err := readDoc(name)
	if err != nil {
		t.Fatal(err)
	}
	if heading == "" {
		return text
	}
	_, rest, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", name, heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	if i := strings.Index(rest, "\n"+level+" "); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// codes lists what the first cells of a part's tables name: every `word`.
func codes(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), " | ")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// sameWords reports what only one of both has.
func sameWords(t *testing.T, what string, docs, program []string) {
	t.Helper()
	if len(program) == 0 {
		t.Fatalf("%s: the program has none", what)
	}
	for _, w := range program {
		if !slices.Contains(docs, w) {
			t.Errorf("%s: %s is not described", what, w)
		}
	}
	for i, w := range docs {
		if !slices.Contains(program, w) {
			t.Errorf("%s: %s is described and does not exist", what, w)
		}
		if slices.Contains(docs[:i], w) {
			t.Errorf("%s: %s is described twice", what, w)
		}
	}
}

// TestMetricsReference compares the table of metrics with a registry in which
// everything has happened once.
func TestMetricsReference(t *testing.T) {
	m := metrics.New("test")
	defer m.Gate("default", func() metrics.Stats { return metrics.Stats{BytesOut: 1, BytesIn: 1} })()
	sink := m.Audit(m.Sink("default"))
	for _, body := range []event.Body{
		new(event.Connection), new(event.Close), new(event.Query),
		new(event.SessionOpened), new(event.SessionRefused), new(event.SessionClosed),
	} {
		if err := sink.Emit(event.Event{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := policy.Compile(&policy.Document{Allow: []policy.Entry{{Text: "a.example.com"}}})
	if err != nil {
		t.Fatal(err)
	}
	m.PolicyLoaded("default", p, time.Now())
	m.PolicyRejected("default")
	m.TokensLoaded(1, nil)
	m.TokensLoaded(0, errors.New("no"))
	m.Volume("default", func() metrics.Volume { return metrics.Volume{Summed: 1} })
	m.DNSServer("udp://192.0.2.53:53")(time.Millisecond, true)
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	types, labels := map[string]string{}, map[string][]string{}
	for line := range strings.Lines(rec.Body.String()) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "TYPE" && strings.HasPrefix(f[2], "egressd_") {
			types[f[2]] = f[3]
		}
		if name := metricName.FindString(line); strings.HasPrefix(line, "egressd_") {
			for _, l := range regexp.MustCompile(`[{,]([a-z_]+)="`).FindAllStringSubmatch(line, -1) {
				if b := baseMetric(name); l[1] != "le" && !slices.Contains(labels[b], l[1]) {
					labels[b] = append(labels[b], l[1])
				}
			}
		}
	}
	text := doc(t, "metrics.md", "")
	described := slices.DeleteFunc(codes(text), func(w string) bool { return !strings.HasPrefix(w, "egressd_") })
	sameWords(t, "metrics", described, slices.Collect(maps.Keys(types)))
	for _, row := range tableRow.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(row[1], "egressd_") {
			continue
		}
		cells := strings.SplitN(row[2], "|", 3)
		if cells[0] = strings.TrimSpace(cells[0]); cells[0] != types[row[1]] {
			t.Errorf("%s is a %s, not a %s", row[1], types[row[1]], cells[0])
		}
		var said []string
		for _, l := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			said = append(said, l[1])
		}
		slices.Sort(said)
		slices.Sort(labels[row[1]])
		if !slices.Equal(said, labels[row[1]]) {
			t.Errorf("%s has the labels %v, not %v", row[1], labels[row[1]], said)
		}
	}
}

// TestAlertsReference compares the table of alerts with the rules that ship.
func TestAlertsReference(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/egressd.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	for _, m := range regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(string(data), -1) {
		rules = append(rules, m[1])
	}
	sameWords(t, "alerts", codes(doc(t, "metrics.md", "## Alerts")), rules)
}

// TestEventsReference compares the page about events with the schema: every
// type, field, door, decision and reason.
func TestEventsReference(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs/event.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct{ Enum []string }
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	sameWords(t, "fields of events", codes(doc(t, "events.md", "## Fields")), slices.Collect(maps.Keys(schema.Properties)))
	sameWords(t, "types of events", codes(doc(t, "events.md", "## Types")), schema.Properties["type"].Enum)
	sameWords(t, "doors", codes(doc(t, "events.md", "## Doors")), schema.Properties["door"].Enum)
	reasons := append(codes(doc(t, "policy.md", "## Reasons")), codes(doc(t, "files.md", "## Reasons"))...)
	sameWords(t, "reasons", reasons, schema.Properties["reason"].Enum)
	for _, decision := range schema.Properties["decision"].Enum {
		if !strings.Contains(doc(t, "events.md", "## Fields"), "`"+decision+"`") {
			t.Errorf("decision %s is not described", decision)
		}
	}
}

// TestRefusalsReference: for each reason of the program there is a row that says
// what to do.
func TestRefusalsReference(t *testing.T) {
	var reasons []string
	none := policy.Reason(255).String()
	for r := range policy.Reason(255) {
		if word := r.String(); word != none && r != policy.ReasonAllowed {
			reasons = append(reasons, word)
		}
	}
	sameWords(t, "refusals", codes(doc(t, "operations.md", "## Refusals")), reasons)
}
