package api

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"egressd/sandbox/vercel/api/firewall"
)

const token = "tok_SECRETSECRET"

// asked is one request that a double got.
type asked struct {
	method, path, query string
	header              http.Header
	body                string
}

// double answers what it is given, in order, and remembers what it was asked.
type double struct {
	*httptest.Server
	mu      sync.Mutex
	answers []http.HandlerFunc
	asked   []asked
}

func newDouble(t *testing.T, answers ...http.HandlerFunc) (*double, *Client) {
	d := &double{answers: answers}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		d.asked = append(d.asked, asked{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Clone(), string(body)})
		var h http.HandlerFunc
		if len(d.answers) > 0 {
			h, d.answers = d.answers[0], d.answers[1:]
		}
		d.mu.Unlock()
		if h == nil {
			http.Error(w, `{"error":{"code":"bad_request","message":"nothing more was to be asked"}}`, 400)
			return
		}
		h(w, r)
	}))
	c := &Client{BaseURL: d.URL + "/api", Token: token, TeamID: "team_x", ProjectID: "prj_x", UserAgent: "egressd/1.2.3", random: func() float64 { return -0.999 }}
	t.Cleanup(func() {
		c.Close()
		d.Close()
		if len(d.answers) > 0 {
			t.Errorf("%d answers were not asked for", len(d.answers))
		}
	})
	return d, c
}

// says answers status and a JSON body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Vercel-Id", "iad1::abc")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const (
	sandboxJSON = `{"name":"probe-a","currentSessionId":"sbx_V","status":"running","statusUpdatedAt":1790987499310,"persistent":false,"region":"iad1","failoverRegions":[],
 "vcpus":1,"memory":2048,"runtime":"node22","architecture":"amd64","image":"vercel/sandbox/universal@sha256:c77f","timeout":240000,"cwd":"/vercel","tags":{"probe":"y"},
 "createdAt":1790987499311,"updatedAt":1790987499311,"somethingNew":{"a":[1]}}`
	sessionJSON = `{"id":"sbx_V","runtime":"node22","architecture":"amd64","requestedAt":1790987499206,"startedAt":1790987499236,"status":"running","vcpus":1,"memory":2048,
 "timeout":240000,"region":"iad1","cwd":"/vercel","createdAt":1790987499206,"updatedAt":1790987499255,"interactivePort":26661,"sourceSandboxName":"probe-a","projectId":"prj_x"}`
	instanceJSON = `{"sandbox":` + sandboxJSON + `,"session":` + sessionJSON + `,"routes":[{"url":"https://sb-55.vercel.run","subdomain":"sb-55","port":3000}]}`
	snapshotJSON = `{"id":"snap_w","sourceSessionId":"sbx_V","architecture":"amd64","region":"iad1","regions":["iad1"],"status":"created","sizeBytes":821242181,
 "expiresAt":1791073910174,"createdAt":1790987510175,"updatedAt":1790987510175,"lastUsedAt":1790987510175,"creationMethod":"manual"}`
	runningJSON = `{"id":"cmd_9","name":"sleep","args":["600"],"cwd":"/vercel","sessionId":"sbx_V","startedAt":1790987502929,"exitCode":null}`
)

func ptr[T any](v T) *T { return &v }

func last[T any](s iter.Seq2[T, error]) (all []T, err error) {
	for v, e := range s {
		if e != nil {
			return all, e
		}
		all = append(all, v)
	}
	return all, nil
}

// wireCase is one call and what goes over the wire for it.
type wireCase struct {
	name   string
	do     func(c *Client) (any, error)
	answer http.HandlerFunc
	want   string // method, path and query
	body   string // JSON; "" is none
	see    func(v any) bool
}

func callsByName(ctx context.Context) []wireCase {
	return []wireCase{
		{
			"create", func(c *Client) (any, error) {
				return c.Create(ctx, CreateRequest{Name: "probe-a", Ports: []int{3000}, Timeout: 240000, Resources: &Resources{VCPUs: 1}, Persistent: ptr(false), Tags: map[string]string{"probe": "y"}}) // no policy denies all
			}, says(200, instanceJSON), "POST /api/v3/sandboxes?teamId=team_x",
			`{"projectId":"prj_x","ports":[3000],"timeout":240000,"resources":{"vcpus":1},"name":"probe-a","persistent":false,"networkPolicy":{"mode":"deny-all"},"tags":{"probe":"y"}}`,
			func(v any) bool {
				i := v.(*Instance)
				return i.Session.ID == "sbx_V" && i.Sandbox.Status == Running && i.Sandbox.MemoryMB == 2048 && i.Session.Cwd == "/vercel" && i.Routes[0].Port == 3000
			},
		},
		{
			"create with a runtime and everything denied", func(c *Client) (any, error) {
				return c.Create(ctx, CreateRequest{Name: "n", Runtime: "node22", NetworkPolicy: &firewall.Policy{}, Env: map[string]string{"A": "<b>&"}, Source: &Source{Type: "git", URL: "https://x/y", Depth: 1}, SnapshotExpiration: ptr(Millis(0))})
			}, says(200, instanceJSON), "POST /api/v2/sandboxes?teamId=team_x",
			`{"projectId":"prj_x","name":"n","ports":[],"source":{"type":"git","url":"https://x/y","depth":1},"runtime":"node22","networkPolicy":{"mode":"deny-all"},"env":{"A":"<b>&"},"snapshotExpiration":0}`, nil,
		},
		{"get", func(c *Client) (any, error) { return c.Get(ctx, "a", false) }, says(200, instanceJSON), "GET /api/v2/sandboxes/a?projectId=prj_x&teamId=team_x", "", nil},
		{"get and resume", func(c *Client) (any, error) { return c.Get(ctx, "a b/c", true) }, says(200, instanceJSON), "GET /api/v2/sandboxes/a%20b%2Fc?projectId=prj_x&resume=true&teamId=team_x", "", nil},
		{"update", func(c *Client) (any, error) {
			return c.Update(ctx, "a", UpdateRequest{Timeout: 5000, Ports: &[]int{}})
		}, says(200, `{"sandbox":`+sandboxJSON+`}`), "PATCH /api/v2/sandboxes/a?projectId=prj_x&teamId=team_x", `{"timeout":5000,"ports":[]}`, nil},
		{"delete", func(c *Client) (any, error) { return nil, c.Delete(ctx, "a", false) }, says(200, `{"sandbox":`+sandboxJSON+`}`), "DELETE /api/v2/sandboxes/a?projectId=prj_x&teamId=team_x", "", nil},
		{"delete with orphans", func(c *Client) (any, error) { return nil, c.Delete(ctx, "a", true) }, says(200, `{}`), "DELETE /api/v2/sandboxes/a?deleteOrphanSnapshots=true&projectId=prj_x&teamId=team_x", "", nil},
		{"fork", func(c *Client) (any, error) { return c.Fork(ctx, "a", ForkRequest{Name: "b"}) }, says(200, instanceJSON), "POST /api/v2/sandboxes/a/fork?projectId=prj_x&teamId=team_x", `{"name":"b"}`, nil},
	}
}

func callsBySession(ctx context.Context) []wireCase {
	return []wireCase{
		{"session", func(c *Client) (any, error) { s, _, err := c.Session(ctx, "sbx_V"); return s, err }, says(200, `{"session":`+sessionJSON+`,"routes":[]}`), "GET /api/v2/sandboxes/sessions/sbx_V?teamId=team_x", "", nil},
		{
			"stop", func(c *Client) (any, error) { return c.Stop(ctx, "sbx_V") },
			says(200, `{"session":{"id":"sbx_V","status":"stopped","duration":6130,"networkTransfer":{"ingress":23441,"egress":14921}}}`), "POST /api/v2/sandboxes/sessions/sbx_V/stop?teamId=team_x", "",
			func(v any) bool {
				return v.(*StopResult).Session.NetworkTransfer.Egress == 14921 && v.(*StopResult).Snapshot == nil
			},
		},
		{"extend", func(c *Client) (any, error) { return c.Extend(ctx, "sbx_V", time.Minute) }, says(200, `{"session":`+sessionJSON+`}`), "POST /api/v2/sandboxes/sessions/sbx_V/extend-timeout?teamId=team_x", `{"duration":60000}`, nil},
		{"network policy", func(c *Client) (any, error) {
			return c.SetNetworkPolicy(ctx, "sbx_V", &firewall.Policy{Domains: []firewall.Domain{{Name: "a.b"}}})
		}, says(200, `{"session":`+sessionJSON+`}`), "POST /api/v2/sandboxes/sessions/sbx_V/network-policy?teamId=team_x", `{"allow":["a.b"]}`, nil},
		{
			"snapshot", func(c *Client) (any, error) {
				s, _, err := c.TakeSnapshot(ctx, "sbx_V", ptr(Millis(86400000)))
				return s, err
			},
			says(201, `{"snapshot":`+snapshotJSON+`,"session":`+sessionJSON+`}`), "POST /api/v2/sandboxes/sessions/sbx_V/snapshot?teamId=team_x", `{"expiration":86400000}`,
			func(v any) bool { return v.(*Snapshot).SizeBytes == 821242181 },
		},
		{"snapshot with the default", func(c *Client) (any, error) { s, _, err := c.TakeSnapshot(ctx, "sbx_V", nil); return s, err }, says(201, `{"snapshot":`+snapshotJSON+`}`), "POST /api/v2/sandboxes/sessions/sbx_V/snapshot?teamId=team_x", `{}`, nil},
		{"get snapshot", func(c *Client) (any, error) { return c.Snapshot(ctx, "snap_w") }, says(200, `{"snapshot":`+snapshotJSON+`}`), "GET /api/v2/sandboxes/snapshots/snap_w?teamId=team_x", "", nil},
		{"delete snapshot", func(c *Client) (any, error) { return c.DeleteSnapshot(ctx, "snap_w") }, says(200, `{"snapshot":`+snapshotJSON+`}`), "DELETE /api/v2/sandboxes/snapshots/snap_w?teamId=team_x", "", nil},
		{"snapshots", func(c *Client) (any, error) { return last(c.Snapshots(ctx, ListOptions{Name: "a", SortBy: "name"})) }, says(200, `{"snapshots":[`+snapshotJSON+`],"pagination":{"count":1,"next":null}}`), "GET /api/v2/sandboxes/snapshots?name=a&project=prj_x&teamId=team_x", "", func(v any) bool { return len(v.([]Snapshot)) == 1 }},
		{"snapshot tree", func(c *Client) (any, error) { return last(c.SnapshotTree(ctx, "snap_w", ListOptions{})) }, says(200, `{"snapshots":[{"snapshot":`+snapshotJSON+`,"siblings":[],"count":"12"}],"pagination":{"count":1,"next":null}}`), "GET /api/v2/sandboxes/snapshots/tree?project=prj_x&snapshotId=snap_w&teamId=team_x", "", func(v any) bool { return v.([]TreeNode)[0].Count == 12 }},
		{"sessions", func(c *Client) (any, error) { return last(c.Sessions(ctx, ListOptions{Name: "a", Limit: 5})) }, says(200, `{"sessions":[`+sessionJSON+`],"pagination":{"count":1,"next":null}}`), "GET /api/v2/sandboxes/sessions?limit=5&name=a&project=prj_x&teamId=team_x", "", nil},
		{"list", func(c *Client) (any, error) {
			return last(c.List(ctx, ListOptions{NamePrefix: "p", SortBy: "name", SortOrder: "asc", Status: Running, Tag: "k:v", Limit: 50}))
		}, says(200, `{"sandboxes":[`+sandboxJSON+`],"pagination":{"count":1,"next":null}}`), "GET /api/v2/sandboxes?limit=50&namePrefix=p&project=prj_x&sortBy=name&sortOrder=asc&status=running&tags=k%3Av&teamId=team_x", "", nil},
		{
			"start", func(c *Client) (any, error) {
				return c.Start(ctx, "sbx_V", CommandRequest{Command: "sleep", Args: []string{"600"}})
			},
			says(200, `{"command":`+runningJSON+`}`), "POST /api/v2/sandboxes/sessions/sbx_V/cmd?teamId=team_x", `{"command":"sleep","args":["600"],"env":{},"sudo":false}`,
			func(v any) bool { return !v.(*Command).Exited() && v.(*Command).ID == "cmd_9" },
		},
		{"commands", func(c *Client) (any, error) { return c.Commands(ctx, "sbx_V") }, says(200, `{"commands":[`+runningJSON+`]}`), "GET /api/v2/sandboxes/sessions/sbx_V/cmd?teamId=team_x", "", nil},
		{"command", func(c *Client) (any, error) { return c.Command(ctx, "sbx_V", "cmd_9") }, says(200, `{"command":`+runningJSON+`}`), "GET /api/v2/sandboxes/sessions/sbx_V/cmd/cmd_9?teamId=team_x", "", nil},
		{"wait", func(c *Client) (any, error) { return c.Wait(ctx, "sbx_V", "cmd_9") }, says(200, `{"command":{"id":"cmd_9","exitCode":143,"durationMs":7}}`), "GET /api/v2/sandboxes/sessions/sbx_V/cmd/cmd_9?teamId=team_x&wait=true", "", func(v any) bool { return *v.(*Command).ExitCode == 143 }},
		{"kill", func(c *Client) (any, error) { return c.Kill(ctx, "sbx_V", "cmd_9", syscall.SIGTERM) }, says(200, `{"command":`+runningJSON+`}`), "POST /api/v2/sandboxes/sessions/sbx_V/cmd/cmd_9/kill?teamId=team_x", `{"signal":15}`, nil},
		{"mkdir", func(c *Client) (any, error) { return nil, c.MakeDir(ctx, "sbx_V", "probe-dir", "", false) }, says(200, `{}`), "POST /api/v2/sandboxes/sessions/sbx_V/fs/mkdir?teamId=team_x", `{"path":"probe-dir"}`, nil},
		{"mkdir -p", func(c *Client) (any, error) { return nil, c.MakeDir(ctx, "sbx_V", "a/b", "/x", true) }, says(200, ``), "POST /api/v2/sandboxes/sessions/sbx_V/fs/mkdir?teamId=team_x", `{"path":"a/b","cwd":"/x","recursive":true}`, nil},
	}
}

func TestRequests(t *testing.T) {
	for _, tt := range slices.Concat(callsByName(t.Context()), callsBySession(t.Context())) {
		t.Run(tt.name, func(t *testing.T) {
			d, c := newDouble(t, tt.answer)
			v, err := tt.do(c)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.asked) != 1 {
				t.Fatalf("%d requests", len(d.asked))
			}
			got := d.asked[0]
			if line := got.method + " " + got.path + "?" + got.query; line != tt.want {
				t.Errorf("asked %s\nwant  %s", line, tt.want)
			}
			if !sameJSON(t, got.body, tt.body) {
				t.Errorf("body %s\nwant %s", got.body, tt.body)
			}
			for k, want := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "User-Agent": "egressd/1.2.3"} {
				if h := got.header.Get(k); h != want {
					t.Errorf("%s: %q", k, h)
				}
			}
			if tt.see != nil && !tt.see(v) {
				t.Errorf("read %+v", v)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	if a == "" || b == "" {
		return a == b
	}
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%q: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
}

func TestPages(t *testing.T) {
	d, c := newDouble(t,
		says(200, `{"sandboxes":[{"name":"a"},{"name":"b"}],"pagination":{"count":2,"next":"c/1"}}`),
		says(200, `{"sandboxes":[{"name":"c"}],"pagination":{"count":1,"next":null}}`))
	all, err := last(c.List(context.Background(), ListOptions{}))
	if err != nil || len(all) != 3 || all[2].Name != "c" || !strings.Contains(d.asked[1].query, "cursor=c%2F1") {
		t.Errorf("%v %v %+v", all, err, d.asked)
	}
	d, c = newDouble(t,
		says(200, `{"snapshots":[{"snapshot":{"id":"p"},"count":"1"}],"pagination":{"count":1,"next":"p"}}`),
		says(200, `{"snapshots":[{"snapshot":{"id":"g"},"count":"1"}],"anchor":{"snapshot":{"id":"p"}},"pagination":{"count":1,"next":null}}`))
	tree, err := last(c.SnapshotTree(context.Background(), "s", ListOptions{}))
	if err != nil || len(tree) != 2 || !strings.Contains(d.asked[1].query, "snapshotId=p") {
		t.Errorf("%v %v %+v", tree, err, d.asked)
	}
	again := says(200, `{"sandboxes":[],"pagination":{"count":0,"next":"same"}}`)
	_, c = newDouble(t, again, again)
	if _, err := last(c.List(context.Background(), ListOptions{})); err == nil || !strings.Contains(err.Error(), "comes again") {
		t.Errorf("a cursor that goes in a circle: %v", err)
	}
}

func TestValidate(t *testing.T) {
	for name, r := range map[string]CreateRequest{
		"a name with a slash":       {Name: "a/b"},
		"a long name":               {Name: strings.Repeat("x", 129)},
		"a low port":                {Ports: []int{80}},
		"a port twice":              {Ports: []int{3000, 3000}},
		"16 ports":                  {Ports: []int{3000, 3001, 3002, 3003, 3004, 3005, 3006, 3007, 3008, 3009, 3010, 3011, 3012, 3013, 3014, 3015}},
		"a short timeout":           {Timeout: 999},
		"three CPUs":                {Resources: &Resources{VCPUs: 3}},
		"a runtime and an image":    {Runtime: "node22", Image: "x"},
		"an image with a snapshot":  {Image: "x", Source: &Source{Type: "snapshot", SnapshotID: "s"}},
		"a snapshot without an id":  {Source: &Source{Type: "snapshot"}},
		"an unknown source":         {Source: &Source{Type: "zip", URL: "https://x"}},
		"six tags":                  {Tags: map[string]string{"a": "", "b": "", "c": "", "d": "", "e": "", "f": ""}},
		"a long tag":                {Tags: map[string]string{"a": strings.Repeat("x", 257)}},
		"a snapshot for an hour":    {SnapshotExpiration: ptr(Millis(3600_000))},
		"eleven snapshots":          {KeepLastSnapshots: &KeepSnapshots{Count: 11}},
		"a policy with two answers": {NetworkPolicy: &firewall.Policy{AllowAll: true, Domains: []firewall.Domain{{Name: "a"}}}},
	} {
		d, c := newDouble(t)
		if _, err := c.Create(context.Background(), r); err == nil || len(d.asked) != 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(d.asked))
		}
	}
	for _, id := range []string{"", ".", "..", "a\nb", strings.Repeat("x", 300)} {
		d, c := newDouble(t)
		if _, err := c.Stop(context.Background(), id); err == nil || len(d.asked) != 0 {
			t.Errorf("session id %q: %v", id, err)
		}
	}
}

func TestPortURL(t *testing.T) {
	routes := []Route{{Port: 3000, URL: "https://sys/", System: true}, {Port: 3000, URL: "https://sb-1.vercel.run/"}, {Port: 4000, Subdomain: "sb-2"}}
	for port, want := range map[int]string{3000: "https://sb-1.vercel.run", 4000: "https://sb-2.vercel.run", 5000: ""} {
		if got, ok := PortURL(routes, port); got != want || ok != (want != "") {
			t.Errorf("%d: %q %v", port, got, ok)
		}
	}
}

func TestNumbers(t *testing.T) {
	for in, want := range map[string]Int{"1": 1, "1.6": 2, `"12"`: 12, "null": 0, "1e3": 1000, "-1": -1} {
		var n Int
		if err := json.Unmarshal([]byte(in), &n); err != nil || n != want {
			t.Errorf("%s: %d %v", in, n, err)
		}
	}
	if err := json.Unmarshal([]byte(`"x"`), new(Int)); err == nil {
		t.Error("a word is no number")
	}
}
