package policy

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"egressd/policy/internal/grammar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestFiles loads each policy file under testdata and compares every word of
// its errors, or its compiled rules, with the golden file beside it.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/files/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := loadReport(filepath.Base(file), data)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("run with -update after reading the change:\n%s", diff)
			}
		})
	}
}

func loadReport(name string, data []byte) string {
	d, err := ParseFile(name, data)
	if err != nil {
		return err.Error() + "\n"
	}
	p, err := Compile(d)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	allow, deny := p.Rules()
	for _, r := range append(allow, deny...) {
		pat, _ := grammar.Parse(r.Text, r.Deny)
		word := "allow "
		if r.Deny {
			word = "deny  "
		}
		b.WriteString(word + pat.String() + "\t" + r.Pos.String() + "\n")
	}
	return b.String()
}

func TestFileSections(t *testing.T) {
	data, err := os.ReadFile("testdata/files/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := ParseFile("full.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Limits(); got != (Limits{
		Connections: 100, ConnectionsPerClient: 50, RatePerSecond: 2.5, RatePerClient: 0.5, BytesPerFlow: 1000000,
		MaxDurationSeconds: 3600, IdleTimeoutSeconds: 300, HeadBytes: 65536, HelloBytes: 16384, HeadTimeoutSeconds: 5, HelloTimeoutSeconds: 7,
	}) {
		t.Errorf("limits %+v", got)
	}
	if got := p.DNS(); got.Mode != DNSForward || len(got.Upstreams) != 2 || got.Upstreams[1].Text != "tls://9.9.9.9" {
		t.Errorf("dns %+v", got)
	}
	if got := p.Secrets(); len(got) != 1 || got[0].Env != "API_TOKEN" || got[0].Hosts[0].Name() != "api.example.com" || got[0].Pos.Line != 25 {
		t.Errorf("secrets %+v", got)
	}
	if got := p.Static(host(t, "two.private.test")); len(got) != 2 || got[1].String() != "fd00::6" {
		t.Errorf("hosts %v", got)
	}
	if p.Audit() {
		t.Error("audit is on")
	}
}

func TestFileBounds(t *testing.T) {
	if _, err := ParseFile("big", make([]byte, maxFileBytes+1)); err == nil || !strings.Contains(err.Error(), "split it") {
		t.Errorf("a file over the bound: %v", err)
	}
	var b strings.Builder
	b.WriteString("allow:\n")
	for range 10 * maxProblems {
		b.WriteString("  - a..b\n")
	}
	_, err := ParseFile("many", []byte(b.String()))
	if n := strings.Count(err.Error(), "\n"); n != maxProblems || !strings.HasSuffix(err.Error(), "and 450 more") {
		t.Errorf("%d lines of problems: %v", n, err)
	}
	var first *Problem
	if !errors.As(err, &first) || first.Pos != (Pos{"many", 2, 5}) || first.Fix == "" {
		t.Errorf("first problem %+v", first)
	}
	// What is wrong with a long text is told in short: it is logged, and recorded.
	long := strings.Repeat("a ", 1<<20)
	for _, text := range []string{"allow: " + long, "\"" + long + "\": 1", "allow:\n  - *" + strings.Repeat("a", 1<<20)} {
		if _, err := ParseFile("long", []byte(text)); err == nil || len(err.Error()) > 3*maxProblemBytes {
			t.Errorf("%.20q: an error of %d bytes", text, len(fmt.Sprint(err)))
		}
	}
	if _, err := ParseFile("deep", []byte(strings.Repeat("[", 20000))); err == nil {
		t.Error("20000 open lists parse")
	}
}

func TestCompilePrecedence(t *testing.T) {
	flags := doc("h.test", "=h.test=10.0.0.1", "=h.test=10.0.0.2")
	flags.DNS.Mode, flags.Limits.Connections = DNSForward, 5
	file := doc("g.test", "=h.test=10.0.0.3", "=g.test=10.0.0.4", "!h.test")
	file.DNS.Mode, file.Limits.Connections, file.Limits.HeadBytes, file.Audit = DNSSynthetic, 6, 7, true
	p, err := Compile(flags, nil, file) // a deny in another document may cover an allow rule
	if err != nil {
		t.Fatal(err)
	}
	// A deny of an earlier document, too, may cover an allow rule of a later one.
	if _, err := Compile(doc("!h.test"), doc("h.test", "!x.test")); err != nil {
		t.Error(err)
	}
	if _, err := Compile(doc("!h.test", "h.test")); err == nil {
		t.Error("one document allows and denies h.test")
	}
	if got := p.Static(host(t, "h.test")); len(got) != 2 || got[0].String() != "10.0.0.1" {
		t.Errorf("hosts of the flags: %v", got)
	}
	if got := p.Static(host(t, "g.test")); len(got) != 1 {
		t.Errorf("hosts of the file: %v", got)
	}
	if p.DNS().Mode != DNSForward || p.Limits().Connections != 5 || p.Limits().HeadBytes != 7 || !p.Audit() {
		t.Errorf("%+v %+v %t", p.DNS(), p.Limits(), p.Audit())
	}
	p.Static(host(t, "h.test"))[0] = p.Static(host(t, "g.test"))[0]
	if p.Static(host(t, "h.test"))[0].String() != "10.0.0.1" {
		t.Error("a caller changed the policy")
	}
}

func TestPorts(t *testing.T) {
	p := compileRules(t, "h.test", "g.test:22,8000-8002", "r.test:1-65535", "a.test:*")
	if diff := cmp.Diff([]uint16{22, 80, 443, 8000, 8001, 8002}, p.Ports()); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseFile(f *testing.F) {
	files, _ := filepath.Glob("testdata/files/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ParseFile("fuzz", data)
		if err != nil {
			if d != nil {
				t.Fatal("a document beside an error")
			}
			return
		}
		p, err := Compile(d)
		if err != nil {
			return // its rules contradict each other
		}
		// Never wider than written: what no rule names stays denied, and every
		// canonical spelling is a rule with the same meaning.
		if !p.Audit() && p.Decide(Request{Host: Host{name: "not-listed.fuzz-canary.test"}, Port: 4711}).Allowed() {
			allow, _ := p.Rules()
			for _, r := range allow {
				if pat, _ := grammar.Parse(r.Text, false); pat.Name == "test" || strings.HasSuffix(pat.Name, "fuzz-canary.test") {
					return
				}
			}
			t.Fatalf("%q allows a host it does not name", data)
		}
		allow, deny := p.Rules()
		for _, r := range append(allow, deny...) {
			pat, err := grammar.Parse(r.Text, r.Deny)
			if err != nil {
				t.Fatalf("%q compiled and does not parse: %v", r.Text, err)
			}
			again, err := grammar.Parse(pat.String(), r.Deny)
			if err != nil || again.String() != pat.String() {
				t.Fatalf("%q spelled %q, then %q, %v", r.Text, pat, again, err)
			}
		}
	})
}

// Documents that were not read from a file are held to the same rules.
func TestCompileChecksWhatFilesCannotSay(t *testing.T) {
	h := []Host{host(t, "h.test")}
	for name, d := range map[string]*Document{
		"a negative limit":        {Limits: Limits{Connections: -1}},
		"a negative duration":     {Limits: Limits{IdleTimeoutSeconds: -1}},
		"a limit out of range":    {Limits: Limits{HeadBytes: 2 << 20}},
		"a rate that is none":     {Limits: Limits{RatePerSecond: math.NaN()}},
		"a rate without end":      {Limits: Limits{RatePerClient: math.Inf(1)}},
		"a header that frames":    {Allow: doc("h.test").Allow, Secrets: []Secret{{Env: "A", Header: "Transfer-Encoding", Hosts: h}}},
		"a header that is two":    {Allow: doc("h.test").Allow, Secrets: []Secret{{Env: "A", Header: "X: y\r\nZ", Hosts: h}}},
		"a variable that is none": {Allow: doc("h.test").Allow, Secrets: []Secret{{Env: "1", Header: "X", Hosts: h}}},
		"a secret for nobody":     {Secrets: []Secret{{Env: "A", Header: "X"}}},
		"a secret for no host":    {Secrets: []Secret{{Env: "A", Header: "X", Hosts: make([]Host, 1)}}},
	} {
		if _, err := Compile(d); err == nil {
			t.Errorf("%s compiles", name)
		}
	}
}
