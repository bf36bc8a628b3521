package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// egressd ship takes a file to a collector, once, with the headers of a file, and says
// what to type where it cannot.
func TestShip(t *testing.T) {
	var lines atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		var req struct {
			ResourceLogs []struct{ ScopeLogs []struct{ LogRecords []any } }
		}
		if err := json.NewDecoder(z).Decode(&req); err != nil || r.Header.Get("Authorization") != "Bearer x" {
			t.Error(err, r.Header)
		}
		for _, from := range req.ResourceLogs {
			lines.Add(int32(len(from.ScopeLogs[0].LogRecords)))
		}
		fmt.Fprint(w, "{}")
	}))
	defer srv.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	events := file("events.jsonl", `{"seq":1,"boot":"b"}`+"\n"+`{"seq":2,"boot":"b"}`+"\n")
	headers := file("headers", "Authorization: Bearer x\n")
	for i, row := range []struct {
		args string
		code int
		says string
	}{
		{"--events " + events + " --otlp " + srv.URL + " --headers " + headers + " --once", 0, ""},
		{"--events " + events + " --otlp " + srv.URL + " --headers " + headers + " --once", 0, ""}, // nothing is new
		{"--otlp " + srv.URL, 2, "--events: name the file"},
		{"--events " + events, 2, "--otlp: name the collector"},
		{"--events " + events + " --otlp collector:4318", 2, "is not a URL such as http://127.0.0.1:4318"},
		{"--events " + events + " --otlp http://c.example --headers " + headers, 2, "unencrypted: write https://"},
		{"--events " + events + " --otlp " + srv.URL + " --headers " + events, 2, "lines of NAME: VALUE"},
		{"--events " + events + " --otlp " + srv.URL + " --ca " + headers, 2, "holds no certificate in PEM"},
		{"--events " + events + " --otlp " + srv.URL + " --state " + file("broken", "{") + " --once", 1, "remove it to ship everything"},
		{"--events " + events + " --otlp " + srv.URL + " x", 2, "takes no arguments"},
	} {
		said, err := os.Create(filepath.Join(dir, fmt.Sprint("said", i)))
		if err != nil {
			t.Fatal(err)
		}
		code := run(append([]string{"ship"}, strings.Fields(row.args)...), nil, said, said)
		text, err := os.ReadFile(said.Name())
		if err != nil || said.Close() != nil || code != row.code || !strings.Contains(string(text), row.says) {
			t.Errorf("%s: %d, %q, %v", row.args, code, text, err)
		}
	}
	if lines.Load() != 2 {
		t.Errorf("%d lines arrived", lines.Load())
	}
}
