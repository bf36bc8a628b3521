package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const printed = `{"what":"machine","of":"load","cpus":2,"cpu":"<a & b>","kernel":"6","go":"go1","load":"0.1","date":"2026-01-02"}
{"what":"connect","who":"relay","of":"load","median":10000,"cpu_us_per_op":100}
{"what":"connect","who":"egressd","of":"load","median":5000,"cpu_us_per_op":210.5,"p50_us":1500,"p99_us":9000}
{"what":"ratio","ratio_of":"connect","who":"egressd","to":"relay","of":"load","median_ratio":0.5,"cpu_ratio":2.105}
{"what":"refused","who":"egressd","of":"dns","answers_per_second":123456,"cpu_s_per_100k":0.5}
{"what":"idle_memory","who":"egressd","of":"flows 1000","median":-0.5,"cpu_us_per_op":200}
{"what":"idle_memory","who":"egressd","of":"flows 9000","median":2.25,"cpu_us_per_op":220}
{"names":10,"of":"lists","ready_s":0.1,"rss_mib":15,"set_up_cpu_s_per_10k":2}
{"names":1000000,"of":"lists","ready_s":0.6,"rss_mib":60,"set_up_cpu_s_per_10k":2.1,"reload_s":1.5,"reload_p999_ms":4}
{"what":"launch","of":"startup","median_us":9000}
{"what":"missing","who":"squid","why":"it is not installed","of":"load"}
{"what":"missing","who":"squid","why":"apt says no","of":"run"}
`

// What was printed, and who is missing and why, is in the tables.
func TestTables(t *testing.T) {
	rows, err := parse([]byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	text := newTables(rows).markdown()
	for _, want := range []string{
		"2026-01-02, 2 processors (<a & b>)",
		"| a tunnel, set up, a byte there and back | egressd | 5,000 | 0.50 | 210 | 2.10 | 1.50, 9.0 |",
		"| a denied name | egressd | 123.5 | 0.50 |",
		"| 1000 | egressd | 0.00 | 200 |",
		"| 1,000,000 | 0.60 | 60 | 2.10 | 1.50 | 4.00 |",
		"| launch | 9.0 |",
		"- squid: apt says no\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if _, err := parse([]byte("{}\nnot JSON\n")); err == nil {
		t.Error("what is no JSON was read")
	}
}

// A page keeps what stands around its figures, and its charts are XML; one without a
// place for them is left alone.
func TestWritePage(t *testing.T) {
	rows, err := parse([]byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	docs := t.TempDir()
	page := filepath.Join(docs, "performance.md")
	if err := os.WriteFile(page, []byte("before\n"+figuresBegin+"old\n"+figuresEnd+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tables := newTables(rows)
	for range 2 { // a second time changes nothing
		if err := tables.writePage(docs); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(page)
		if want := "before\n" + figuresBegin + "\n" + tables.markdown() + "\n" + figuresEnd + "after\n"; err != nil || string(got) != want {
			t.Errorf("%s, %v", got, err)
		}
	}
	charts := tables.charts()
	if len(charts) != 6 {
		t.Errorf("%d charts", len(charts))
	}
	for name := range charts {
		f, err := os.Open(filepath.Join(docs, "performance", name))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(f); err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		_ = f.Close()
	}
	if err := os.WriteFile(page, []byte("no place"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tables.writePage(docs); err == nil {
		t.Error("a page without a place was written")
	}
}
