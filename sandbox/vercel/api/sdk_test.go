package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"egressd/sandbox/vercel/api/firewall"
)

// recorded is one request that the official SDK sent.
type recorded struct {
	Step, Method, Path string
	Query              map[string][]string
	Header             map[string]string
	Body               json.RawMessage
	Status             int
}

// object is the body as JSON object; nil where it is none.
func (r *recorded) object() map[string]json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(r.Body, &o) != nil {
		return nil
	}
	return o
}

func (r *recorded) text(key string) string {
	var s string
	_ = json.Unmarshal(r.object()[key], &s) // "" where it is none
	return s
}

// TestAsTheSDK makes every request that the SDK 3.5.0 made against the double by
// a method of ours, and compares what goes out.
func TestAsTheSDK(t *testing.T) {
	text, err := os.ReadFile("../fake/testdata/sdk/traffic-3.5.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range all {
		r := &all[i]
		if r.Status == 0 || strings.Contains(string(r.Body), `"ARGS"`) || r.Query["cursor"] != nil ||
			r.Body == nil && strings.HasSuffix(r.Path, "/cmd") || r.Body == nil && strings.HasSuffix(r.Path, "/fs/read") {
			continue // what the recording itself left out
		}
		if r.Status == http.StatusBadRequest && strings.HasSuffix(r.Path, "/v3/sandboxes") {
			continue // a name that no service takes: ours does not send it
		}
		if r.Step == "drives" {
			continue // launch mounts none
		}
		got := ours(t, r)
		if got == nil {
			t.Errorf("%s: no method of ours makes %s %s", r.Step, r.Method, r.Path)
			continue
		}
		compared++
		compare(t, r, got)
	}
	if compared < 80 {
		t.Errorf("%d requests were compared", compared)
	}
}

func compare(t *testing.T, want *recorded, got *http.Request) {
	t.Helper()
	name := want.Step + ": " + want.Method + " " + want.Path
	if got.Method != want.Method || got.URL.EscapedPath() != want.Path {
		t.Errorf("%s: %s %s", name, got.Method, got.URL.EscapedPath())
	}
	if q := url.Values(want.Query).Encode(); got.URL.RawQuery != q {
		t.Errorf("%s: query %s, want %s", name, got.URL.RawQuery, q)
	}
	for k, v := range want.Header {
		if got.Header.Get(k) != v {
			t.Errorf("%s: %s: %q, want %q", name, k, got.Header.Get(k), v)
		}
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.HasSuffix(want.Path, "/fs/write"):
		heads, contents := unpack(t, string(body))
		var files []struct{ Name, Mode, Type string }
		if err := json.Unmarshal(want.Body, &files); err != nil {
			t.Fatal(err)
		}
		for i, f := range files {
			if h := heads[i]; h.Name != f.Name || len(contents) != len(files) || "0"+string(h.Typeflag) != "0"+f.Type {
				t.Errorf("%s: entry %+v, want %+v", name, h, f)
			}
		}
	case strings.HasSuffix(want.Path, "/snapshot") && want.Body == nil: // nothing and {} are the same to the service
	case !sameJSON(t, string(body), string(want.Body)):
		t.Errorf("%s: body %s, want %s", name, body, want.Body)
	}
}

// ours is the request that a method of ours makes for what r asks.
func ours(t *testing.T, r *recorded) *http.Request {
	t.Helper()
	k := &keeper{}
	c := &Client{HTTP: &http.Client{Transport: k}, Token: "token", TeamID: "team_x", ProjectID: "prj_x"}
	ctx := context.Background()
	rest, bySession := strings.CutPrefix(r.Path, "/api/v2/sandboxes/sessions/")
	id, after, _ := strings.Cut(rest, "/")
	name := path.Base(r.Path)
	switch {
	case strings.HasPrefix(r.Path, "/api/v2/sandboxes/snapshots"):
		snapshots(ctx, c, r, name)
	case bySession:
		session(t, ctx, c, r, id, after)
	case r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/fork"):
		var in ForkRequest
		decode(t, r.Body, &in)
		_, _ = c.Fork(ctx, path.Base(path.Dir(r.Path)), in)
	case r.Method == http.MethodPost:
		var in CreateRequest
		in.NetworkPolicy = policyOf(t, r.object()["networkPolicy"])
		decode(t, without(t, r.Body, "networkPolicy"), &in)
		_, _ = c.Create(ctx, in)
		if r.object()["networkPolicy"] == nil { // ours always says it
			k.drop(t, "networkPolicy")
		}
	case r.Method == http.MethodPatch:
		var in UpdateRequest
		in.NetworkPolicy = policyOf(t, r.object()["networkPolicy"])
		decode(t, without(t, r.Body, "networkPolicy"), &in)
		_, _ = c.Update(ctx, name, in)
	case r.Method == http.MethodDelete:
		_ = c.Delete(ctx, name, false)
	case strings.HasSuffix(r.Path, "/v2/sandboxes"):
		_, _ = last(c.List(ctx, options(r)))
	case strings.HasSuffix(r.Path, "/sessions"):
		_, _ = last(c.Sessions(ctx, options(r)))
	default:
		_, _ = c.Get(ctx, name, r.Query["resume"] != nil)
	}
	return k.kept
}

func options(r *recorded) (o ListOptions) {
	q := url.Values(r.Query)
	o = ListOptions{Name: q.Get("name"), NamePrefix: q.Get("namePrefix"), SortBy: q.Get("sortBy"), SortOrder: q.Get("sortOrder"), Tag: q.Get("tags")}
	if q.Get("limit") == "2" {
		o.Limit = 2
	}
	return o
}

func snapshots(ctx context.Context, c *Client, r *recorded, name string) {
	switch {
	case name == "snapshots":
		_, _ = last(c.Snapshots(ctx, options(r)))
	case name == "tree":
		_, _ = last(c.SnapshotTree(ctx, url.Values(r.Query).Get("snapshotId"), ListOptions{}))
	case r.Method == http.MethodDelete:
		_, _ = c.DeleteSnapshot(ctx, name)
	default:
		_, _ = c.Snapshot(ctx, name)
	}
}

func session(t *testing.T, ctx context.Context, c *Client, r *recorded, id, after string) {
	t.Helper()
	command, cmdAfter, _ := strings.Cut(strings.TrimPrefix(after, "cmd/"), "/")
	var in struct{ Duration, Signal Int }
	if r.Body != nil && after != "fs/write" {
		decode(t, r.Body, &in)
	}
	switch {
	case after == "cmd":
		var in CommandRequest
		decode(t, r.Body, &in)
		if r.object()["wait"] != nil {
			_, _ = c.Run(ctx, id, in, nil, nil)
		} else {
			_, _ = c.Start(ctx, id, in)
		}
	case strings.HasPrefix(after, "cmd/") && cmdAfter == "kill":
		_, _ = c.Kill(ctx, id, command, syscall.Signal(in.Signal))
	case strings.HasPrefix(after, "cmd/") && cmdAfter == "logs":
		_ = c.Logs(ctx, id, command, nil)
	case strings.HasPrefix(after, "cmd/") && r.Query["wait"] != nil:
		_, _ = c.Wait(ctx, id, command)
	case strings.HasPrefix(after, "cmd/"):
		_, _ = c.Command(ctx, id, command)
	case after == "fs/mkdir":
		_ = c.MakeDir(ctx, id, r.text("path"), r.text("cwd"), false)
	case after == "fs/read":
		_, _ = c.ReadFile(ctx, id, r.text("path"), r.text("cwd"))
	case after == "fs/write":
		var files []struct{ Name string }
		decode(t, r.Body, &files)
		var send []File
		for _, f := range files {
			send = append(send, fileOf("/"+f.Name, "x", 0))
		}
		_ = c.WriteFiles(ctx, id, slices.Values(send), nil)
	case after == "extend-timeout":
		_, _ = c.Extend(ctx, id, in.Duration.Duration())
	case after == "network-policy":
		_, _ = c.SetNetworkPolicy(ctx, id, policyOf(t, r.Body))
	case after == "interactive":
		_, _ = c.Terminal(ctx, id, TerminalRequest{})
	case after == "snapshot":
		_, _, _ = c.TakeSnapshot(ctx, id, nil)
	case after == "stop":
		_, _ = c.Stop(ctx, id)
	case after == "":
		_, _, _ = c.Session(ctx, id)
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func without(t *testing.T, text []byte, key string) []byte {
	t.Helper()
	var o map[string]json.RawMessage
	decode(t, text, &o)
	delete(o, key)
	out, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// policyOf reads a policy as the SDK sends it.
func policyOf(t *testing.T, text []byte) *firewall.Policy {
	t.Helper()
	if text == nil {
		return nil
	}
	var in struct {
		Mode    string
		Allow   json.RawMessage
		Subnets struct{ Allow, Deny []string }
	}
	decode(t, text, &in)
	p := &firewall.Policy{AllowAll: in.Mode == "allow-all", AllowSubnets: in.Subnets.Allow, DenySubnets: in.Subnets.Deny}
	var names []string
	var rules map[string][]struct {
		Transform []struct{ Headers map[string]string }
	}
	if json.Unmarshal(in.Allow, &names) == nil {
		for _, n := range names {
			p.Domains = append(p.Domains, firewall.Domain{Name: n})
		}
	} else if json.Unmarshal(in.Allow, &rules) == nil {
		for n, rs := range rules {
			d := firewall.Domain{Name: n}
			for _, r := range rs {
				d.Rules = append(d.Rules, firewall.Rule{Headers: r.Transform[0].Headers})
			}
			p.Domains = append(p.Domains, d)
		}
	}
	return p
}

// keeper keeps a request and answers what no retry follows.
type keeper struct{ kept *http.Request }

func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	body := []byte{}
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	k.kept = r
	k.kept.Body = io.NopCloser(strings.NewReader(string(body)))
	return &http.Response{StatusCode: 418, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// drop takes one member out of the body.
func (k *keeper) drop(t *testing.T, key string) {
	t.Helper()
	body, err := io.ReadAll(k.kept.Body)
	if err != nil {
		t.Fatal(err)
	}
	k.kept.Body = io.NopCloser(strings.NewReader(string(without(t, body, key))))
}
