package fake

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What a create may not say. The answer comes before anything is made.
func TestCreateRefused(t *testing.T) {
	d := newDouble(t, Config{})
	long := strings.Repeat("x", 300)
	for _, body := range []string{
		`{}`, `{"projectId":""}`, `[]`, `{`, `{"projectId":"p","name":"a b"}`, `{"projectId":"p","name":"` + long + `"}`,
		`{"projectId":"p","name":""}`, `{"projectId":"p","ports":[80]}`, `{"projectId":"p","ports":[70000]}`, `{"projectId":"p","ports":[3000,3000]}`,
		`{"projectId":"p","ports":[2001,2002,2003,2004,2005,2006,2007,2008,2009,2010,2011,2012,2013,2014,2015,2016]}`,
		`{"projectId":"p","timeout":999}`, `{"projectId":"p","timeout":"5m"}`, `{"projectId":"p","timeout":86400001}`,
		`{"projectId":"p","resources":{"vcpus":3}}`, `{"projectId":"p","resources":{"vcpus":0}}`, `{"projectId":"p","resources":{"vcpus":64}}`,
		`{"projectId":"p","resources":{"vcpus":1,"memory":1024}}`, `{"projectId":"p","runtime":"node22"}`, `{"projectId":"p","image":""}`,
		`{"projectId":"p","image":"` + long + `"}`, `{"projectId":"p","tags":{"a":"1","b":"2","c":"3","d":"4","e":"5","f":"6"}}`,
		`{"projectId":"p","tags":{"a":"` + long + `"}}`, `{"projectId":"p","snapshotExpiration":1000}`,
		`{"projectId":"p","keepLastSnapshots":{"count":0}}`, `{"projectId":"p","keepLastSnapshots":{"count":11}}`,
		`{"projectId":"p","keepLastSnapshots":{"count":1,"expiration":5}}`, `{"projectId":"p","env":{"A=B":"c"}}`, `{"projectId":"p","env":{"":"c"}}`,
		`{"projectId":"p","source":{"type":"zip","url":"https://a.example/"}}`, `{"projectId":"p","source":{"type":"git","url":"file:///etc"}}`,
		`{"projectId":"p","source":{"type":"git","url":"https://a.example/","username":"u"}}`, `{"projectId":"p","source":{"type":"snapshot"}}`,
		`{"projectId":"p","image":"x","source":{"type":"snapshot","snapshotId":"snap_x"}}`, `{"projectId":"p","unknown":1}`,
		`{"projectId":"p","currentSnapshotId":"snap_x"}`, `{"projectId":"p","networkPolicy":{"mode":"allow-some"}}`, `{"projectId":"p","persistent":"no"}`,
	} {
		if g := d.send("POST", "/v3/sandboxes", body); g.status != 400 || g.text("error", "code") != "bad_request" {
			t.Errorf("%s: got %d %s", body, g.status, g.body)
		}
	}
	for _, body := range []string{`{"projectId":"p","runtime":"node1"}`, `{"projectId":"p","runtime":"node22","image":"x"}`} {
		d.send("POST", "/v2/sandboxes", body).want(400, "bad_request")
	}
	d.send("POST", "/v3/sandboxes", `{"projectId":"p","source":{"type":"snapshot","snapshotId":"snap_x"}}`).want(410, "snapshot_not_found")
	if g := d.send("GET", "/v2/sandboxes?project=p", nil).want(200); len(g.at("sandboxes").([]any)) != 0 {
		t.Errorf("something was made: %s", g.body)
	}
}

// The answer of create, field by field.
func TestCreateAnswer(t *testing.T) {
	needMachines(t)
	d := newDouble(t, Config{})
	begun := time.Now().UnixMilli()
	g := d.send("POST", "/v3/sandboxes?teamId=team_x", `{"projectId":"prj_x","ports":[3000],"timeout":240000,"resources":{"vcpus":1},"name":"probe-a","persistent":false,"tags":{"probe":"y"},"__private":1}`).want(200)
	for path, want := range map[string]any{
		"sandbox.name": "probe-a", "sandbox.status": "running", "sandbox.persistent": false, "sandbox.region": "iad1", "sandbox.vcpus": 1.0,
		"sandbox.memory": 2048.0, "sandbox.runtime": "node22", "sandbox.timeout": 240000.0, "sandbox.cwd": "/vercel", "sandbox.tags.probe": "y",
		"sandbox.networkPolicy": nil, "sandbox.totalDurationMs": nil, "sandbox.currentSnapshotId": nil, "session.status": "running",
		"session.vcpus": 1.0, "session.memory": 2048.0, "session.cwd": "/vercel", "session.sourceSandboxName": "probe-a", "session.projectId": "prj_x",
		"session.interactivePort": 26661.0, "session.stoppedAt": nil, "session.networkTransfer": nil, "session.duration": nil,
	} {
		var keys []any
		for _, k := range strings.Split(path, ".") {
			keys = append(keys, k)
		}
		if got := g.at(keys...); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if got := g.text("sandbox", "image"); !strings.HasPrefix(got, "vercel/sandbox/universal@sha256:") {
		t.Errorf("image %q", got)
	}
	if id := g.text("session", "id"); id != g.text("sandbox", "currentSessionId") || !strings.HasPrefix(id, "sbx_") || len(id) != 32 {
		t.Errorf("session %q", id)
	}
	for _, f := range []string{"createdAt", "updatedAt", "requestedAt", "startedAt"} {
		if at, _ := g.at("session", f).(float64); int64(at) < begun || int64(at) > time.Now().UnixMilli() {
			t.Errorf("%s is %v", f, g.at("session", f))
		}
	}
	if p := g.at("routes", 0, "port"); p != 3000.0 || !strings.HasPrefix(g.text("routes", 0, "subdomain"), "sb-") {
		t.Errorf("routes %v", g.at("routes"))
	}
	if g.header.Get("X-Vercel-Id") == "" || g.header.Get("X-Ratelimit-Limit") != "20" || g.header.Get("X-Ratelimit-Remaining") != "19" || g.header.Get("X-Ratelimit-Reset") == "" {
		t.Errorf("header %v", g.header)
	}
	d.send("POST", "/v3/sandboxes", `{"projectId":"prj_x","name":"probe-a"}`).want(409, "conflict")
	d.send("POST", "/v3/sandboxes", `{"projectId":"prj_y","name":"probe-a"}`).want(200)
}

// The old create: another user's home and directory.
func TestCreateLegacy(t *testing.T) {
	needMachines(t)
	d := newDouble(t, Config{})
	g := d.send("POST", "/v2/sandboxes", `{"projectId":"p","runtime":"python3.13","ports":[],"env":{"A":"sandbox","B":"sandbox"}}`).want(200)
	if g.text("sandbox", "runtime") != "python3.13" || g.text("session", "cwd") != "/vercel/sandbox" || g.at("sandbox", "image") != nil {
		t.Errorf("got %s", g.body)
	}
	if out, _ := d.run(g.text("session", "id"), "pwd; echo $HOME; whoami; echo $A"); out != "/vercel/sandbox\n/home/vercel-sandbox\nvercel-sandbox\nsandbox\n" {
		t.Errorf("got %q", out)
	}
	if g := d.send("POST", "/v2/sandboxes", `{"projectId":"p"}`).want(200); g.text("sandbox", "runtime") != "node24" || g.at("sandbox", "persistent") != true {
		t.Errorf("got %s", g.body)
	}
}

func TestAuthorization(t *testing.T) {
	d := newDouble(t, Config{Token: "right", TeamID: "team_a", ProjectID: "prj_a"})
	list := "/v2/sandboxes?project=prj_a"
	d.send("GET", list+"&teamId=team_a", nil).want(403, "forbidden")
	d.send("GET", list+"&teamId=team_a", nil, "Authorization", "Basic right").want(401, "forbidden")
	right := []string{"Authorization", "Bearer right"}
	d.send("GET", list+"&teamId=team_b", nil, right...).want(403, "forbidden")
	d.send("GET", list+"&teamId=team_a", nil, right...).want(200)
	d.send("GET", list, nil, right...).want(200)
	d.send("GET", "/v2/sandboxes?project=prj_b", nil, right...).want(404, "not_found")
	d.send("GET", "/v2/sandboxes", nil, right...).want(400, "bad_request")
	d.send("GET", "/v2/nothing", nil, right...).want(404, "not_found")
	d.send("PUT", list, nil, right...).want(405, "method_not_allowed")
	req, err := http.NewRequestWithContext(t.Context(), "GET", d.url+"/_double/requests", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := d.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("the record without a token: %s", resp.Status)
	}
}

// jwt is a token as OIDC hands them out; nobody checks its signature.
func jwt(owner, project string, expires time.Time) string {
	claims, _ := json.Marshal(map[string]any{"owner_id": owner, "project_id": project, "exp": expires.Unix()})
	return "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
}

func TestOIDC(t *testing.T) {
	needMachines(t)
	d := newDouble(t, Config{})
	in := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	token := jwt("team_a", "prj_a", time.Now().Add(time.Hour))
	d.send("GET", "/v2/sandboxes", nil, in(token)...).want(200)
	d.send("GET", "/v2/sandboxes?teamId=team_b", nil, in(token)...).want(403, "forbidden")
	d.send("GET", "/v2/sandboxes?project=prj_b", nil, in(token)...).want(403, "forbidden")
	d.send("GET", "/v2/sandboxes", nil, in(jwt("team_a", "prj_a", time.Now().Add(-time.Hour)))...).want(403, "forbidden")
	sid := d.send("POST", "/v3/sandboxes", `{"name":"a"}`, in(token)...).want(200).text("session", "id")
	d.send("GET", "/v2/sandboxes/a?projectId=prj_a", nil).want(200)
	other := in(jwt("team_a", "prj_b", time.Now().Add(time.Hour)))
	d.send("GET", "/v2/sandboxes/sessions/"+sid, nil, other...).want(404, "not_found")
	d.send("POST", "/v2/sandboxes/sessions/"+sid+"/cmd", `{"command":"true"}`, other...).want(404, "not_found")
}

func TestListSandboxes(t *testing.T) {
	needMachines(t)
	d := newDouble(t, Config{})
	for i, name := range []string{"b-1", "a-2", "a-1", "c-1"} {
		d.create(fmt.Sprintf(`{"projectId":"p","name":%q,"persistent":false,"tags":{"n":"%d"}}`, name, i%2))
	}
	d.send("POST", "/v2/sandboxes/sessions/"+d.send("GET", "/v2/sandboxes/c-1?projectId=p", nil).text("session", "id")+"/stop", nil).want(200)
	names := func(g got) (out string) {
		for i := range g.at("sandboxes").([]any) {
			out += g.text("sandboxes", i, "name") + " "
		}
		return strings.TrimSpace(out)
	}
	for query, want := range map[string]string{
		"":                                "c-1 a-1 a-2 b-1",
		"&sortOrder=asc":                  "b-1 a-2 a-1 c-1",
		"&sortBy=name&sortOrder=asc":      "a-1 a-2 b-1 c-1",
		"&sortBy=name&namePrefix=a-":      "a-2 a-1",
		"&sortBy=statusUpdatedAt&limit=1": "c-1",
		"&sortBy=currentSnapshotId&sortOrder=asc": "b-1 a-2 a-1 c-1",
		"&tags=n:1":       "c-1 a-2",
		"&tags=n:7":       "",
		"&status=stopped": "c-1",
		"&status=running&sortBy=name&namePrefix=c-": "",
	} {
		if got := names(d.send("GET", "/v2/sandboxes?project=p"+query, nil).want(200)); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	var all []string
	cursor := ""
	for range 5 {
		g := d.send("GET", "/v2/sandboxes?project=p&limit=2&sortBy=name&sortOrder=asc"+cursor, nil).want(200)
		all = append(all, names(g))
		if g.at("pagination", "next") == nil {
			break
		}
		cursor = "&cursor=" + g.text("pagination", "next")
	}
	if got := strings.Join(all, "|"); got != "a-1 a-2|b-1 c-1" {
		t.Errorf("pages: %s", got)
	}
	for _, query := range []string{"&limit=0", "&limit=51", "&limit=x", "&sortBy=size", "&sortOrder=up", "&namePrefix=a", "&cursor=x", "&tags=a:1&tags=b:1", "&tags=a"} {
		d.send("GET", "/v2/sandboxes?project=p"+query, nil).want(400, "bad_request")
	}
}

func TestPatch(t *testing.T) {
	d := newDouble(t, Config{})
	d.create(`{"projectId":"p","name":"a","ports":[3000],"networkId":"n"}`)
	g := d.send("PATCH", "/v2/sandboxes/a?projectId=p", `{"persistent":false,"resources":{"vcpus":4,"memory":8192},"timeout":60000,"tags":{"k":"v"},"ports":[4000],"env":{"A":"b"},"snapshotExpiration":0,"keepLastSnapshots":{"count":2},"networkPolicy":{"mode":"deny-all"},"networkId":null,"region":"sfo1"}`).want(200)
	for field, want := range map[string]any{"persistent": false, "vcpus": 4.0, "memory": 8192.0, "timeout": 60000.0, "snapshotExpiration": 0.0, "networkId": nil, "region": "sfo1"} {
		if got := g.at("sandbox", field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	if g.text("sandbox", "networkPolicy", "mode") != "deny-all" || g.at("sandbox", "keepLastSnapshots", "count") != 2.0 {
		t.Errorf("got %s", g.body)
	}
	s := d.send("GET", "/v2/sandboxes/a?projectId=p", nil).want(200)
	if s.at("session", "networkPolicy") != nil || s.at("session", "timeout") != 300000.0 || s.at("session", "vcpus") != 2.0 {
		t.Errorf("the session that runs changed: %s", s.body)
	}
	if g.at("routes", 0, "port") != 4000.0 || len(g.at("routes").([]any)) != 1 || s.text("routes", 0, "url") != g.text("routes", 0, "url") {
		t.Errorf("routes: %v, then %v", g.at("routes"), s.at("routes"))
	}
	d.send("PATCH", "/v2/sandboxes/a?projectId=p", `{"keepLastSnapshots":null}`).want(200)
	d.send("PATCH", "/v2/sandboxes/a?projectId=p", `{"timeout":1}`).want(400, "bad_request")
	d.send("PATCH", "/v2/sandboxes/a?projectId=p", `{"name":"b"}`).want(400, "bad_request")
	d.send("PATCH", "/v2/sandboxes/a?projectId=p", `{"currentSnapshotId":"snap_x"}`).want(410, "snapshot_not_found")
	d.send("PATCH", "/v2/sandboxes/b?projectId=p", `{}`).want(404, "not_found")
}
