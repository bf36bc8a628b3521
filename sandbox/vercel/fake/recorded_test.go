package fake

import (
	"slices"
	"strings"
	"testing"
)

// What recordings of the hosted service show and a reader of its documentation
// would not expect.

func TestRecordedSandbox(t *testing.T) {
	d := newDouble(t, Config{})
	totals := []string{"totalEgressBytes", "totalIngressBytes", "totalActiveCpuDurationMs", "totalDurationMs"}
	needMachines(t)
	made := d.send("POST", "/v3/sandboxes", `{"projectId":"p","name":"a","timeout":60000}`).want(200)
	for _, f := range append(slices.Clone(totals), "expiresAt", "currentSnapshotId") {
		if made.at("sandbox", f) != nil {
			t.Errorf("create shows %s: %s", f, made.body)
		}
	}
	found := d.send("GET", "/v2/sandboxes/a?projectId=p", nil).want(200)
	if found.at("resumed") != false {
		t.Errorf("resumed is %v", found.at("resumed"))
	}
	list := d.send("GET", "/v2/sandboxes?project=p", nil).want(200)
	for _, f := range totals {
		if found.at("sandbox", f) != 0.0 || list.at("sandboxes", 0, f) != 0.0 {
			t.Errorf("%s: GET %v, list %v", f, found.at("sandbox", f), list.at("sandboxes", 0, f))
		}
	}
	started, _ := found.at("session", "startedAt").(float64)
	if found.at("sandbox", "expiresAt") != started+60000 || list.at("sandboxes", 0, "expiresAt") != started+60000 {
		t.Errorf("expiresAt: GET %v, list %v, started %v", found.at("sandbox", "expiresAt"), list.at("sandboxes", 0, "expiresAt"), started)
	}
	sid := made.text("session", "id")
	if out, _ := d.run(sid, "id -un; id -gn; echo $USER $HOME"); out != "ubuntu\nubuntu\nubuntu /vercel\n" {
		t.Errorf("the user is %q", out)
	}
	for name := range everywhere {
		if made.header.Get(name) != everywhere[name] || d.send("GET", "/v2/sandboxes/none?projectId=p", nil).header.Get(name) == "" {
			t.Errorf("%s is %q", name, made.header.Get(name))
		}
	}
}

func TestRecordedSnapshot(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","name":"a","persistent":false}`)
	snap := d.send("POST", sessions+sid+"/snapshot", `{}`).want(201)
	if snap.at("session", "requestedStopAt") != nil || snap.text("session", "status") != "snapshotting" {
		t.Errorf("got %s", snap.body)
	}
	id := snap.text("snapshot", "id")
	stopped := d.send("POST", sessions+sid+"/stop", nil).want(200)
	if stopped.at("snapshot") != nil || stopped.text("sandbox", "currentSnapshotId") != id {
		t.Errorf("stop after a manual snapshot: %s", stopped.body)
	}
	from := d.send("POST", "/v3/sandboxes", `{"projectId":"p","name":"b","persistent":false,"source":{"type":"snapshot","snapshotId":"`+id+`"}}`).want(200)
	if from.text("sandbox", "currentSnapshotId") != id {
		t.Errorf("create from a snapshot: %s", from.body)
	}
	// getOrCreate of the SDKs begins anew on this status and code alone.
	d.send("DELETE", "/v2/sandboxes/snapshots/"+id, nil).want(200)
	d.send("GET", "/v2/sandboxes/a?projectId=p&resume=true", nil).want(410, "snapshot_not_found")
	without := d.create(`{"projectId":"p","name":"c","persistent":false}`)
	d.send("POST", sessions+without+"/stop", nil).want(200)
	if g := d.send("GET", "/v2/sandboxes/c?projectId=p&resume=true", nil).want(400, "snapshot_not_found"); g.text("error", "message") != "Cannot resume sandbox: no snapshot available." {
		t.Errorf("got %s", g.body)
	}
}

func TestRecordedMkdir(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p"}`)
	d.send("POST", sessions+sid+"/fs/mkdir", `{"path":"probe-dir"}`).want(200)
	for path, want := range map[string]string{
		"probe-dir": "error creating directory: /vercel/probe-dir: File exists",
		"no/parent": "error creating directory: No such file or directory",
		"/usr/x":    "error creating directory: ",
	} {
		if g := d.send("POST", sessions+sid+"/fs/mkdir", `{"path":"`+path+`"}`).want(400, "file_error"); !strings.HasPrefix(g.text("error", "message"), want) {
			t.Errorf("%s: %s", path, g.body)
		}
	}
}

func TestRegionsAndImages(t *testing.T) {
	d := newDouble(t, Config{Images: []string{"team/app"}})
	for fields, status := range map[string]int{
		`"region":"mars1"`: 400, `"failoverRegions":["mars1"]`: 400, `"failoverRegions":["iad1"]`: 400, `"region":"sfo1","failoverRegions":["sfo1"]`: 400,
		`"failoverRegions":["sfo1","sfo1"]`: 400, `"image":"no/such"`: 404, `"image":"vercel/sandbox/node:21"`: 404,
	} {
		d.send("POST", "/v3/sandboxes", `{"projectId":"p",`+fields+`}`).want(status)
	}
	needMachines(t)
	for _, fields := range []string{
		`"region":"sfo1","failoverRegions":["iad1","fra1"]`, `"image":"vercel/sandbox/node:22"`, `"image":"team/app:v1"`,
	} {
		d.send("POST", "/v3/sandboxes", `{"projectId":"p",`+fields+`}`).want(200)
	}
}
