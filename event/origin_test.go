package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// (boot, seq) names a line: two starts that append to one file, each from 1, cannot be
// mistaken for each other.
func TestTwoStartsInOneFile(t *testing.T) {
	var file bytes.Buffer
	const starts, each = 3, 4
	for range starts {
		w := &Writer{W: &file, Resource: map[string]string{"k8s.pod.name": "agent-0", "host.name": "web-1"}}
		for range each {
			if err := w.Emit(Event{Body: asked("h")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	schema, seen := loadSchema(t), map[string]bool{}
	for text := range bytes.Lines(file.Bytes()) {
		var e Event
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatalf("%s%v", text, err)
		}
		if !bytes.Contains(text, []byte(`,"resource":{"host.name":"web-1","k8s.pod.name":"agent-0"}}`)) {
			t.Errorf("a line does not end with where it is from: %s", text)
		}
		again, err := json.Marshal(e)
		if err != nil || string(again)+"\n" != string(text) {
			t.Errorf("read and written again:\n%s\n%s%v", again, text, err)
		}
		// A question without a host cannot be valid by the schema; its origin is looked at alone.
		if err := validate(t, schema, text); err != nil && strings.Contains(err.Error(), "resource") {
			t.Error(err)
		}
		seen[fmt.Sprint(e.Boot(), " ", e.Seq)] = true
	}
	if len(seen) != starts*each {
		t.Errorf("%d names for %d lines", len(seen), starts*each)
	}
}

// What an operator's machine is called cannot forge a line either.
func TestOriginIsEscaped(t *testing.T) {
	e := Event{Body: asked("h"), origin: newOrigin("x", map[string]string{"a\"}\n": "a\n\"},{\u2028"}, maxStringBytes)}
	if line := appendLine(nil, &e); bytes.Count(line, []byte{'\n'}) != 1 || !json.Valid(line) {
		t.Errorf("%q", line)
	}
}

func TestDecodeRefusesOtherVersions(t *testing.T) {
	const head = `{"time":"2026-01-02T03:04:05.000000Z","seq":1,"type":"daemon.started","version":"v1"`
	for tail, ok := range map[string]bool{
		`}`:                                 true, // from before there was a version
		`,"v":1,"boot":"0123456789abcdef"}`: true,
		`,"v":2,"boot":"0123456789abcdef"}`: false,
		`,"boot":"0123456789abcdef"}`:       false,
	} {
		var e Event
		if err := json.Unmarshal([]byte(head+tail), &e); (err == nil) != ok {
			t.Errorf("%s: %v", tail, err)
		}
	}
}

// What an origin adds to the time of a line.
func BenchmarkAppendLine(b *testing.B) {
	place := newOrigin("0123456789abcdef", map[string]string{"host.name": "web-1", "k8s.namespace.name": "agents", "k8s.pod.name": "agent-7d9f-x2x4z"}, maxStringBytes)
	for _, tt := range []struct {
		name   string
		origin *origin
	}{{"plain", nil}, {"with origin", place}} {
		b.Run(tt.name, func(b *testing.B) {
			e := sample()
			e.origin = tt.origin
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = appendLine(buf[:0], &e)
			}
			b.ReportMetric(float64(len(buf)), "bytes/line")
		})
	}
}
