package fake

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"
)

const sessions = "/v2/sandboxes/sessions/"

func TestStopAndDelete(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","name":"a","persistent":false}`)
	d.run(sid, "echo hi")
	g := d.send("POST", sessions+sid+"/stop", nil).want(200)
	if g.text("session", "status") != "stopped" || g.text("sandbox", "status") != "stopped" || g.at("snapshot") != nil {
		t.Errorf("got %s", g.body)
	}
	for _, f := range []string{"requestedStopAt", "stoppedAt", "duration", "activeCpuDurationMs", "networkTransfer"} {
		if g.at("session", f) == nil {
			t.Errorf("the session has no %s", f)
		}
	}
	d.send("POST", sessions+sid+"/stop", `{}`).want(200)
	for _, what := range [][2]string{
		{"POST", "/cmd"}, {"GET", "/cmd"}, {"POST", "/fs/mkdir"}, {"POST", "/fs/read"}, {"POST", "/extend-timeout"}, {"POST", "/network-policy"}, {"POST", "/snapshot"},
	} {
		d.send(what[0], sessions+sid+what[1], `{}`).want(410, "sandbox_stopped")
	}
	d.send("GET", sessions+sid, nil).want(200)
	d.send("GET", "/v2/sandboxes/a?projectId=p&resume=true", nil).want(400, "snapshot_not_found")
	d.send("GET", "/v2/sandboxes/a?projectId=p&resume=maybe", nil).want(400, "bad_request")
	d.send("GET", "/v2/sandboxes/a?projectId=p&resume=false", nil).want(200)
	if g := d.send("DELETE", "/v2/sandboxes/a?projectId=p", nil).want(200); g.text("sandbox", "name") != "a" {
		t.Errorf("got %s", g.body)
	}
	d.send("DELETE", "/v2/sandboxes/a?projectId=p", nil).want(404, "not_found")
	running := d.create(`{"projectId":"p","name":"a"}`)
	d.send("DELETE", "/v2/sandboxes/a?projectId=p", nil).want(200)
	if g := d.send("GET", sessions+running, nil).want(200); g.text("session", "status") != "stopped" {
		t.Errorf("delete left it running: %s", g.body)
	}
	d.send("POST", sessions+"sbx_none/stop", nil).want(404, "not_found")
	d.send("POST", sessions+running+"/interactive", `{}`).want(410, "sandbox_stopped")
}

// A persistent sandbox keeps its disk: a snapshot when it stops, a new session
// from it when it is resumed.
func TestPersistent(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","name":"a","keepLastSnapshots":{"count":1}}`)
	d.run(sid, "echo one >f; echo two >/tmp/g")
	g := d.send("POST", sessions+sid+"/stop", nil).want(200)
	first := g.text("snapshot", "id")
	if first == "" || first != g.text("sandbox", "currentSnapshotId") || g.text("snapshot", "creationMethod") != "automatic" {
		t.Fatalf("got %s", g.body)
	}
	if g := d.send("GET", "/v2/sandboxes/a?projectId=p", nil).want(200); g.text("session", "status") != "stopped" || g.at("resumed") != false {
		t.Errorf("without resume: %s", g.body)
	}
	g = d.send("GET", "/v2/sandboxes/a?projectId=p&resume=true", nil).want(200)
	again := g.text("session", "id")
	if again == sid || g.at("resumed") != true || g.text("session", "sourceSnapshotId") != first {
		t.Errorf("resumed: %s", g.body)
	}
	if out, _ := d.run(again, "cat f /tmp/g"); out != "one\ntwo\n" {
		t.Errorf("after the resume: %q", out)
	}
	if g := d.send("GET", "/v2/sandboxes/a?projectId=p&resume=true", nil).want(200); g.at("resumed") != false || g.text("session", "id") != again {
		t.Errorf("resumed while it ran: %s", g.body)
	}
	second := d.send("POST", sessions+again+"/stop", nil).want(200)
	if second.text("snapshot", "parentId") != first {
		t.Errorf("got %s", second.body)
	}
	d.wg.Wait() // the one too many goes in the background
	d.send("GET", "/v2/sandboxes/snapshots/"+first, nil).want(410, "snapshot_not_found")
	if g := d.send("GET", sessions[:len(sessions)-1]+"?project=p&name=a&sortOrder=asc", nil).want(200); g.text("sessions", 0, "id") != sid || g.text("sessions", 1, "id") != again {
		t.Errorf("sessions: %s", g.body)
	}
	if g := d.send("GET", "/v2/sandboxes/a?projectId=p", nil); g.at("sandbox", "totalDurationMs") == nil {
		t.Errorf("no totals: %s", g.body)
	}
}

func TestSnapshots(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","name":"a","persistent":false}`)
	d.run(sid, "echo one >f; chmod 700 f; ln -s f l")
	d.send("POST", sessions+sid+"/snapshot", `{"expiration":5}`).want(400, "bad_request")
	g := d.send("POST", sessions+sid+"/snapshot", `{"expiration":86400000}`).want(201)
	id := g.text("snapshot", "id")
	if g.text("session", "status") != "snapshotting" || g.text("snapshot", "status") != "created" || g.text("snapshot", "sourceSessionId") != sid || g.text("snapshot", "creationMethod") != "manual" {
		t.Errorf("got %s", g.body)
	}
	if size, _ := g.at("snapshot", "sizeBytes").(float64); size < 4 || g.at("snapshot", "expiresAt") == nil {
		t.Errorf("got %s", g.body)
	}
	d.send("POST", sessions+sid+"/cmd", `{"command":"true"}`).want(410, "sandbox_stopped")
	from := d.create(`{"projectId":"p","name":"b","source":{"type":"snapshot","snapshotId":"` + id + `"}}`)
	if out, _ := d.run(from, "cat l; stat -c %a f; echo two >f"); out != "one\n700\n" {
		t.Errorf("in a copy: %q", out)
	}
	child := d.send("POST", sessions+from+"/snapshot", nil).want(201).text("snapshot", "id")
	if out, _ := d.run(d.create(`{"projectId":"p","source":{"type":"snapshot","snapshotId":"`+id+`"}}`), "cat f"); out != "one\n" {
		t.Errorf("the snapshot was changed: %q", out)
	}
	if g := d.send("GET", "/v2/sandboxes/snapshots?project=p&sortOrder=asc", nil).want(200); g.text("snapshots", 0, "id") != id || g.text("snapshots", 1, "id") != child {
		t.Errorf("list: %s", g.body)
	}
	if g := d.send("GET", "/v2/sandboxes/snapshots?project=p&name=b", nil).want(200); g.text("snapshots", 0, "id") != child || g.at("pagination", "count") != 1.0 {
		t.Errorf("list by name: %s", g.body)
	}
	if g := d.send("GET", "/v2/sandboxes/snapshots/tree?project=p&snapshotId="+child, nil).want(200); g.text("snapshots", 0, "snapshot", "id") != id || g.text("anchor", "snapshot", "id") != child || g.text("anchor", "count") != "0" {
		t.Errorf("tree: %s", g.body)
	}
	if g := d.send("GET", "/v2/sandboxes/snapshots/tree?project=p&sortOrder=asc&snapshotId="+id, nil).want(200); g.text("snapshots", 0, "snapshot", "id") != child {
		t.Errorf("tree: %s", g.body)
	}
	d.send("GET", "/v2/sandboxes/snapshots/tree?project=p", nil).want(400, "bad_request")
	fork := d.send("POST", "/v2/sandboxes/a/fork?projectId=p", `{"name":"c","env":{"A":"b"}}`).want(200)
	if out, _ := d.run(fork.text("session", "id"), "cat f; echo $A"); out != "one\nb\n" {
		t.Errorf("in a fork: %q", out)
	}
	d.send("GET", "/v2/sandboxes/snapshots/"+id, nil).want(200)
	if g := d.send("DELETE", "/v2/sandboxes/snapshots/"+id, nil).want(200); g.text("snapshot", "status") != "deleted" {
		t.Errorf("got %s", g.body)
	}
	d.send("GET", "/v2/sandboxes/snapshots/"+id, nil).want(410, "snapshot_not_found")
	d.send("DELETE", "/v2/sandboxes/snapshots/snap_none", nil).want(404, "not_found")
	d.send("POST", "/v3/sandboxes", `{"projectId":"p","source":{"type":"snapshot","snapshotId":"`+id+`"}}`).want(410, "snapshot_not_found")
	d.send("DELETE", "/v2/sandboxes/b?projectId=p&deleteOrphanSnapshots=true", nil).want(200)
	d.send("GET", "/v2/sandboxes/snapshots/"+child, nil).want(410, "snapshot_not_found")
}

// A session ends when its time is over, and says so in the streams it has.
func TestTimeout(t *testing.T) {
	t.Parallel()
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","timeout":1500,"persistent":false}`)
	g := d.send("POST", sessions+sid+"/extend-timeout", `{"duration":1000}`).want(200)
	if g.at("session", "timeout") != 2500.0 {
		t.Errorf("got %s", g.body)
	}
	for _, body := range []string{`{}`, `{"duration":1}`, `{"duration":999999999999}`} {
		d.send("POST", sessions+sid+"/extend-timeout", body).want(400, "bad_request")
	}
	begun := time.Now()
	g = d.send("POST", sessions+sid+"/cmd", `{"command":"sh","args":["-c","echo a; exec sleep 60"],"wait":true,"logs":true}`).want(200)
	if took := time.Since(begun); took < time.Second || took > 20*time.Second {
		t.Errorf("it ended after %v", took)
	}
	if text := string(g.body); !strings.Contains(text, `{"data":"a\n","stream":"stdout"}`) || !strings.Contains(text, `"code":"sandbox_stopped"`) || !strings.Contains(text, `"stream":"error"`) {
		t.Errorf("the stream: %s", text)
	}
	d.send("POST", sessions+sid+"/stop", nil).want(200) // waits for the end of it
	d.send("GET", sessions+sid+"/cmd", nil).want(410, "sandbox_stopped")
}

// The states on the way, which calls meet with 422.
func TestTransitions(t *testing.T) {
	needMachines(t)
	for _, tt := range []struct{ call, status, code string }{
		{"/stop", "stopping", "sandbox_stopping"}, {"/snapshot", "snapshotting", "sandbox_snapshotting"},
	} {
		t.Run(tt.status, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, Config{Delays: Delays{Boot: 300 * time.Millisecond, Stop: time.Second, Snapshot: time.Second}})
			g := d.send("POST", "/v3/sandboxes", `{"projectId":"p","persistent":false,"ports":[3000]}`).want(200)
			if g.text("session", "status") != "pending" || g.text("sandbox", "status") != "pending" || g.at("routes", 0, "port") != 3000.0 {
				t.Errorf("got %s", g.body)
			}
			sid := g.text("session", "id")
			d.run(sid, "true") // waits until it runs
			if g := d.send("GET", sessions+sid, nil).want(200); g.text("session", "status") != "running" {
				t.Errorf("got %s", g.body)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _, _, _ = d.try("POST", sessions+sid+tt.call, "")
			}()
			status := "running"
			for status == "running" {
				status = d.send("GET", sessions+sid, nil).text("session", "status")
			}
			if status != tt.status {
				t.Errorf("status %q, want %q", status, tt.status)
			}
			d.send("POST", sessions+sid+"/cmd", `{"command":"true"}`).want(422, tt.code)
			<-done
			d.send("POST", sessions+sid+"/cmd", `{"command":"true"}`).want(410, "sandbox_stopped")
		})
	}
}

// archive is a gzip tar of files, as the SDK sends it.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Format: tar.FormatUSTAR}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text))
	}
	_, _ = w.Close(), z.Close()
	return b.Bytes()
}

func TestFiles(t *testing.T) {
	d := newDouble(t, Config{})
	sid := d.create(`{"projectId":"p","persistent":false}`)
	data := archive(t, map[string]string{"vercel/probe/hello.txt": "hello", "tmp/abs/bin.dat": "\x00\xff"})
	if g := d.send("POST", sessions+sid+"/fs/write", data, "Content-Type", "application/gzip", "X-Cwd", "/").want(200); string(bytes.TrimSpace(g.body)) != "{}" {
		t.Errorf("got %s", g.body)
	}
	d.send("POST", sessions+sid+"/fs/write", archive(t, map[string]string{"rel": "r"}), "Content-Type", "application/gzip", "X-Cwd", "probe").want(200)
	read := func(body string) got { return d.send("POST", sessions+sid+"/fs/read", body) }
	g := read(`{"path":"probe/hello.txt"}`).want(200)
	if string(g.body) != "hello" || g.header.Get("Content-Type") != "application/octet-stream" || g.header.Get("Content-Disposition") != `attachment; filename="hello.txt"` {
		t.Errorf("got %q, %v", g.body, g.header)
	}
	if g.header.Get("Content-Length") != "" {
		t.Error("a length was told")
	}
	if g := read(`{"path":"/tmp/abs/bin.dat"}`).want(200); string(g.body) != "\x00\xff" {
		t.Errorf("got %q", g.body)
	}
	if g := read(`{"path":"rel","cwd":"/vercel/probe"}`).want(200); string(g.body) != "r" {
		t.Errorf("got %q", g.body)
	}
	read(`{"path":"no-such"}`).want(404, "not_found")
	read(`{"path":"probe"}`).want(400, "file_error")
	read(`{}`).want(400, "bad_request")
	d.send("POST", sessions+sid+"/fs/write", data, "Content-Type", "application/json").want(400, "bad_request")
	d.send("POST", sessions+sid+"/fs/write", []byte("no archive"), "Content-Type", "application/gzip").want(400, "file_error")
	mkdir := func(body string) got { return d.send("POST", sessions+sid+"/fs/mkdir", body) }
	mkdir(`{"path":"dir"}`).want(200)
	mkdir(`{"path":"dir"}`).want(400, "file_error")
	mkdir(`{"path":"a/b"}`).want(400, "file_error")
	mkdir(`{"path":"a/b","recursive":true}`).want(200)
	mkdir(`{"path":"a/b","recursive":true}`).want(200)
	mkdir(`{"path":"c","cwd":"a"}`).want(200)
	if out, _ := d.run(sid, "find . -type d | sort | tr '\n' ' '"); out != ". ./a ./a/b ./a/c ./dir ./probe " {
		t.Errorf("directories: %q", out)
	}
}
