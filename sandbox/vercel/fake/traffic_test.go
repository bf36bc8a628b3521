package fake

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the SDKs sent to testdata")

// sent is what one request of an SDK said: what another client's can be
// compared with. Ids are numbered in the order in which they appear.
type sent struct {
	Step   string            `json:"step"` // of testdata/sdk/driver.mjs
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Query  url.Values        `json:"query,omitempty"`
	Header map[string]string `json:"header"`
	Body   any               `json:"body,omitempty"` // JSON, or the entries of an archive
	Status int               `json:"status"`         // of the answer
}

var ids = regexp.MustCompile(`(sbx|cmd|snap)_[0-9a-zA-Z]{28}`)

// normalize is r without what changes from run to run.
func normalize(t *testing.T, reqs []Request) []sent {
	t.Helper()
	numbers := map[string]string{}
	replace := func(s string) string {
		return ids.ReplaceAllStringFunc(s, func(id string) string {
			if numbers[id] == "" {
				numbers[id] = fmt.Sprintf("%s_%d", id[:bytes.IndexByte([]byte(id), '_')], len(numbers)+1)
			}
			return numbers[id]
		})
	}
	var out []sent
	for _, r := range reqs {
		q, err := url.ParseQuery(r.Query)
		if err != nil {
			t.Fatal(err)
		}
		if q.Has("cursor") {
			q.Set("cursor", "CURSOR")
		}
		if id := q.Get("snapshotId"); id != "" {
			q.Set("snapshotId", replace(id))
		}
		s := sent{Step: r.Header.Get("X-Double-Step"), Method: r.Method, Path: replace(r.Path), Query: q, Status: r.Status, Header: map[string]string{}}
		for _, name := range []string{"Authorization", "Content-Type", "X-Cwd"} {
			if v := r.Header.Get(name); v != "" {
				s.Header[name] = v
			}
		}
		s.Body = bodyOf(t, r, replace)
		out = append(out, s)
	}
	return out
}

func bodyOf(t *testing.T, r Request, replace func(string) string) any {
	t.Helper()
	if len(r.Body) == 0 {
		return nil
	}
	if r.Header.Get("Content-Type") == "application/gzip" {
		return entries(t, r.Body)
	}
	var v any
	if err := json.Unmarshal([]byte(replace(string(r.Body))), &v); err != nil {
		t.Fatalf("%s: %v", r.Body, err)
	}
	if m, ok := v.(map[string]any); ok && m["command"] == "curl" {
		m["args"] = "ARGS" // a port of this run
	}
	return v
}

// entries lists what an archive holds.
func entries(t *testing.T, archive []byte) any {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	list := []any{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, map[string]any{
			"name": h.Name, "mode": fmt.Sprintf("%#o", h.Mode), "type": string(h.Typeflag), "uid": float64(h.Uid), "gid": float64(h.Gid), "text": fmt.Sprintf("%q", data),
		})
	}
}

// compareTraffic holds what an SDK sent against testdata/sdk/traffic-VERSION.json,
// which other clients' tests can read without the SDK.
func compareTraffic(t *testing.T, version string, reqs []Request) {
	t.Helper()
	got := normalize(t, reqs)
	path := filepath.Join("testdata", "sdk", "traffic-"+version+".json")
	if *update {
		var b bytes.Buffer
		for i, s := range got {
			line, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString([]string{"[\n", ",\n"}[min(i, 1)])
			b.Write(line)
		}
		b.WriteString("\n]\n")
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []sent
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	if err := json.Unmarshal(again, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the SDK sends something else than what is in %s (-update writes it):\n%s", path, d)
	}
}
