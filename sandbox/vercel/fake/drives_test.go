package fake

import (
	"strings"
	"testing"
)

func TestDrives(t *testing.T) {
	needMachines(t)
	d := newDouble(t, Config{})
	const drives = "/v2/sandboxes/drives"
	g := d.send("POST", drives+"/work", `{"projectId":"p","maxSizeBytes":1000}`).want(200)
	id := g.text("drive", "id")
	if g.at("drive", "maxSizeBytes") != 1000.0 || g.text("drive", "region") != "iad1" || !strings.HasPrefix(id, "drive_") {
		t.Errorf("got %s", g.body)
	}
	if g := d.send("POST", drives+"/work", `{"projectId":"p"}`).want(200); g.text("drive", "id") != id || g.at("drive", "maxSizeBytes") != 1000.0 {
		t.Errorf("the second time: %s", g.body)
	}
	d.send("POST", drives+"/other", `{"projectId":"p"}`).want(200)
	first := d.send("GET", drives+"?projectId=p&limit=1&sortBy=name&sortOrder=asc", nil).want(200)
	next := d.send("GET", drives+"?projectId=p&limit=1&sortBy=name&sortOrder=asc&cursor="+first.text("pagination", "next"), nil).want(200)
	if first.text("drives", 0, "name") != "other" || next.text("drives", 0, "name") != "work" || next.at("pagination", "next") != nil {
		t.Errorf("got %s, then %s", first.body, next.body)
	}

	writer := d.create(`{"projectId":"p","name":"a","persistent":false,"mounts":{"/data":{"drive":"work"},"/vercel/in/side":{"drive":"other","mode":"read-write"}}}`)
	if out, _ := d.run(writer, "echo kept > /data/f && echo too > /vercel/in/side/f && cat /data/f"); out != "kept\n" {
		t.Errorf("got %q", out)
	}
	d.send("POST", "/v3/sandboxes", `{"projectId":"p","name":"b","mounts":{"/data":{"drive":"work"}}}`).want(409, "conflict")
	reader := d.create(`{"projectId":"p","name":"b","persistent":false,"mounts":{"/mnt/w":{"drive":"work","mode":"snapshot"}}}`)
	d.run(writer, "echo later > /data/f")
	if out, code := d.run(reader, "cat /mnt/w/f; echo x 2>/dev/null > /mnt/w/f"); out != "kept\n" || code == 0 {
		t.Errorf("a snapshot: got %q, %d", out, code)
	}
	d.send("DELETE", drives+"/work?projectId=p", nil).want(409, "conflict")
	if g := d.send("POST", drives+"/work", `{"projectId":"p"}`); g.text("drive", "currentSandboxName") != "a" || g.text("drive", "currentSessionId") != writer {
		t.Errorf("whose it is: %s", g.body)
	}
	d.send("DELETE", "/v2/sandboxes/a?projectId=p", nil).want(200)
	d.send("DELETE", "/v2/sandboxes/b?projectId=p", nil).want(200)

	again := d.create(`{"projectId":"p","name":"c","mounts":{"/data":{"drive":"work"}}}`)
	if out, _ := d.run(again, "cat /data/f; chmod 0 /data"); out != "later\n" {
		t.Errorf("in the next sandbox: %q", out)
	}
	d.send("PATCH", "/v2/sandboxes/c?projectId=p", `{"mounts":{"/data":{"drive":"none"}}}`).want(404, "not_found")
	if g := d.send("PATCH", "/v2/sandboxes/c?projectId=p", `{"mounts":{}}`).want(200); g.at("sandbox", "mounts") != nil {
		t.Errorf("got %s", g.body)
	}
	d.send("POST", "/v2/sandboxes/sessions/"+again+"/stop", `{}`).want(200)
	d.send("DELETE", drives+"/work?projectId=p", nil).want(200)
	d.send("DELETE", drives+"/work?projectId=p", nil).want(404, "not_found")
	d.send("GET", "/v2/sandboxes/c?projectId=p&resume=true", nil).want(200)
}

func TestDrivesRefused(t *testing.T) {
	d := newDouble(t, Config{})
	for _, body := range []string{`{"projectId":"p","region":"x"}`, `{"projectId":"p","maxSizeBytes":0}`, `{}`} {
		d.send("POST", "/v2/sandboxes/drives/a", body).want(400, "bad_request")
	}
	d.send("POST", "/v2/sandboxes/drives/a%20b", `{"projectId":"p"}`).want(400, "bad_request")
	for _, query := range []string{"", "?projectId=p&sortBy=size", "?projectId=p&namePrefix=a", "?projectId=p&limit=0"} {
		d.send("GET", "/v2/sandboxes/drives"+query, nil).want(400, "bad_request")
	}
	for _, mounts := range []string{
		`[]`, `{"x":{"drive":"a"}}`, `{"/":{"drive":"a"}}`, `{"/a/../b":{"drive":"a"}}`, `{"/proc/x":{"drive":"a"}}`, `{"/.vercel":{"drive":"a"}}`,
		`{"/a":{"drive":"a","mode":"write"}}`, `{"/a":{}}`, `{"/a":{"drive":"a"},"/b":{"drive":"a"}}`,
	} {
		d.send("POST", "/v3/sandboxes", `{"projectId":"p","mounts":`+mounts+`}`).want(400, "bad_request")
	}
	d.send("POST", "/v3/sandboxes", `{"projectId":"p","mounts":{"/a":{"drive":"a"}}}`).want(404, "not_found")
}
