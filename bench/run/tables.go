package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tables are the figures of one run.
type tables struct{ rows []row }

func newTables(rows []row) *tables { return &tables{rows} }

// words say what each measurement is. Those of bench/load are in processor microseconds of
// the proxy for one of them; a megabyte is a million bytes.
var words = map[string]string{
	"connect": "a tunnel, set up, a byte there and back", "connect_tls": "the same, a TLS hello inside",
	"refused": "a refusal", "ping_1": "a byte there and back, 1 tunnel", "ping_200": "a byte there and back, 200 tunnels",
	"http_get": "a forwarded request, 64 kept-alive connections", "bulk_1": "a megabyte, 1 tunnel", "bulk_8": "a megabyte, 8 tunnels",
	"synthetic": "an allowed name, answered by the server itself", "cached": "an allowed name, out of the cache",
	"refused dns": "a denied name", "forwarded": "an allowed name that nobody has asked for yet",
}

// of are the rows of a step whose "what" is one of whats; none: all.
func (t *tables) of(step string, whats ...string) (rows []row) {
	for _, r := range t.rows {
		if r["of"] == step && (len(whats) == 0 || slices.Contains(whats, r.text("what"))) {
			rows = append(rows, r)
		}
	}
	return rows
}

func (r row) text(key string) string { s, _ := r[key].(string); return s }
func (r row) num(key string) float64 { f, _ := r[key].(float64); return f }

// measured lists what a step measured, in its order.
func (t *tables) measured(step string) (whats []string) {
	for _, r := range t.of(step) {
		if w := r.text("what"); r.text("who") != "" && w != "missing" && w != "ratio" && !slices.Contains(whats, w) {
			whats = append(whats, w)
		}
	}
	return whats
}

// ratio finds who's ratio to the bound.
func (t *tables) ratio(what, who, key string) string {
	for _, r := range t.of("load", "ratio") {
		if r.text("ratio_of") == what && r.text("who") == who && r.text("to") == "relay" {
			return number(r.num(key))
		}
	}
	return "–"
}

// flowSteps are the steps with idle tunnels, and how many.
func (t *tables) flowSteps() (steps []string) {
	for _, r := range t.rows {
		if s := r.text("of"); strings.HasPrefix(s, "flows ") && !slices.Contains(steps, s) {
			steps = append(steps, s)
		}
	}
	return steps
}

// markdown is all tables.
func (t *tables) markdown() string {
	var b strings.Builder
	b.WriteString(t.machine())
	b.WriteString("\n| tunnels and requests | who | a second | of the relay's | CPU, µs each | of the relay's | p50, p99, ms |\n|---|---|---|---|---|---|---|\n")
	for _, what := range t.measured("load") {
		for _, r := range t.of("load", what) {
			who, waits := r.text("who"), "–"
			if p := r.num("p50_us"); p > 0 {
				waits = fmt.Sprintf("%.2f, %.1f", p/1e3, r.num("p99_us")/1e3)
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", words[what], who, whole(r.num("median")),
				t.ratio(what, who, "median_ratio"), number(r.num("cpu_us_per_op")), t.ratio(what, who, "cpu_ratio"), waits)
		}
	}
	b.WriteString("\n| DNS | who | thousand a second | CPU, s for 100,000 |\n|---|---|---|---|\n")
	for _, what := range t.measured("dns") {
		for _, r := range t.of("dns", what) {
			fmt.Fprintf(&b, "| %s | %s | %.1f | %.2f |\n", dnsWords(what), r.text("who"), r.num("answers_per_second")/1e3, r.num("cpu_s_per_100k"))
		}
	}
	b.WriteString("\n| idle tunnels | who | KiB resident for each | CPU of a set-up beside them, µs |\n|---|---|---|---|\n")
	for _, step := range t.flowSteps() {
		for _, r := range t.of(step, "idle_memory") {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.TrimPrefix(step, "flows "), r.text("who"), number(max(r.num("median"), 0)), number(r.num("cpu_us_per_op")))
		}
	}
	b.WriteString("\n| names allowed | ready after, s | MiB resident | CPU of 10,000 set-ups, s | a reload, s | a set-up meanwhile, p99.9, ms |\n|---|---|---|---|---|---|\n")
	for _, r := range t.lists() {
		fmt.Fprintf(&b, "| %s | %.2f | %.0f | %.2f | %s | %s |\n", whole(r.num("names")), r.num("ready_s"), r.num("rss_mib"), r.num("set_up_cpu_s_per_10k"),
			orNone(r.num("reload_s")), orNone(r.num("reload_p999_ms")))
	}
	b.WriteString("\n| start and end of `/bin/true` | median, ms |\n|---|---|\n")
	for _, r := range t.of("startup") {
		if r.num("median_us") > 0 {
			fmt.Fprintf(&b, "| %s | %.1f |\n", r.text("what"), r.num("median_us")/1e3)
		}
	}
	b.WriteString(t.missing())
	return b.String()
}

func dnsWords(what string) string {
	if w := words[what+" dns"]; w != "" {
		return w
	}
	return words[what]
}

// lists are the rows of bench/lists, the first of each length.
func (t *tables) lists() (rows []row) {
	for _, r := range t.of("lists") {
		if n := r.num("names"); n > 0 && !slices.ContainsFunc(rows, func(o row) bool { return o.num("names") == n }) {
			rows = append(rows, r)
		}
	}
	return rows
}

func (t *tables) machine() string {
	for _, r := range t.of("load", "machine") {
		return fmt.Sprintf("%s, %.0f processors (%s), Linux %s, %s, load of the machine at the start %s.\n",
			r.text("date"), r.num("cpus"), r.text("cpu"), r.text("kernel"), r.text("go"), r.text("load"))
	}
	return ""
}

// missing names those that took no part, and why; the reason of the installation, if
// that failed, goes before that of a load, which did not find it.
func (t *tables) missing() string {
	why := map[string]string{}
	var order []string
	for _, r := range t.rows {
		if r.text("what") != "missing" {
			continue
		}
		who := r.text("who")
		if why[who] == "" {
			order = append(order, who)
		}
		if why[who] == "" || r.text("of") == "run" {
			why[who], _, _ = strings.Cut(r.text("why"), "\n")
		}
	}
	if len(order) == 0 {
		return "\nNobody is missing.\n"
	}
	text := "\nMissing:\n\n"
	for _, who := range order {
		text += "- " + who + ": " + why[who] + "\n"
	}
	return text
}

// whole has commas between thousands.
func whole(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func orNone(v float64) string {
	if v == 0 {
		return "–"
	}
	return number(v)
}

// charts are the drawings, by file name.
func (t *tables) charts() map[string]string {
	var load, names []group
	for _, what := range t.measured("load") {
		load = append(load, t.group(words[what], "load", what, "cpu_us_per_op"))
	}
	for _, what := range t.measured("dns") {
		names = append(names, t.group(dnsWords(what), "dns", what, "cpu_s_per_100k"))
	}
	charts := map[string]string{
		"proxies.svg": bars("Processor time of the proxy", "µs each; shorter is better", load),
		"dns.svg":     bars("Processor time of the DNS server", "s for 100,000 answers; shorter is better", names),
	}
	memory, cpu := series{name: "egressd"}, series{name: "egressd"}
	for _, r := range t.lists() {
		memory.points = append(memory.points, [2]float64{r.num("names"), r.num("rss_mib")})
		cpu.points = append(cpu.points, [2]float64{r.num("names"), r.num("set_up_cpu_s_per_10k") * 100})
	}
	byRow := func(a, b [2]float64) int { return int(a[0] - b[0]) }
	slices.SortFunc(memory.points, byRow)
	slices.SortFunc(cpu.points, byRow)
	if len(memory.points) > 0 {
		charts["list-memory.svg"] = curves("Resident memory by names in the list", "MiB", []series{memory})
		charts["list-cpu.svg"] = curves("Processor time of a set-up by names in the list", "µs", []series{cpu})
	}
	charts["flow-memory.svg"] = curves("Resident memory for an idle tunnel, by tunnels", "KiB", t.flows("median"))
	charts["flow-cpu.svg"] = curves("Processor time of a set-up, by idle tunnels beside it", "µs", t.flows("cpu_us_per_op"))
	return charts
}

func (t *tables) group(label, step, what, key string) group {
	g := group{label: label}
	for _, r := range t.of(step, what) {
		if v := r.num(key); v > 0 {
			g.bars = append(g.bars, bar{r.text("who"), v})
		}
	}
	return g
}

// flows are the curves of key, by the number of tunnels.
func (t *tables) flows(key string) (all []series) {
	for _, step := range t.flowSteps() {
		var n float64
		if _, err := fmt.Sscanf(step, "flows %g", &n); err != nil {
			continue
		}
		for _, r := range t.of(step, "idle_memory") {
			i := slices.IndexFunc(all, func(s series) bool { return s.name == r.text("who") })
			if i < 0 {
				i = len(all)
				all = append(all, series{name: r.text("who")})
			}
			all[i].points = append(all[i].points, [2]float64{n, max(r.num(key), 0)})
		}
	}
	return all
}

// Where the figures stand in the page.
const (
	figuresBegin = "<!-- The figures begin: go run ./bench/run -page writes them. -->\n"
	figuresEnd   = "<!-- The figures end. -->\n"
)

// writePage puts tables and charts into the page below docs.
func (t *tables) writePage(docs string) error {
	page := filepath.Join(docs, "performance.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), figuresBegin)
	_, after, ok2 := strings.Cut(rest, figuresEnd)
	if !ok || !ok2 {
		return errors.New(page + " has no place for figures")
	}
	dir := filepath.Join(docs, "performance")
	if err := os.MkdirAll(dir, 0o755); err != nil { // #nosec: a page's drawings
		return err
	}
	for name, drawing := range t.charts() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(drawing), 0o644); err != nil { // #nosec: as above
			return err
		}
	}
	return os.WriteFile(page, []byte(before+figuresBegin+"\n"+t.markdown()+"\n"+figuresEnd+after), 0o644) // #nosec: as above
}
