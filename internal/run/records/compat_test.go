package records

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Records as launch wrote them when remote and metadata were maps.
const (
	oldSandbox = `{
  "version": 1,
  "name": "old",
  "tier": "vercel",
  "status": "active",
  "createdAt": "2026-03-01T10:00:00.5Z",
  "updatedAt": "2026-03-01T10:00:01Z",
  "workspace": "/w",
  "flags": [
    "--tier=vercel"
  ],
  "remote": {
    "project": "prj_1",
    "region": "iad1",
    "sandbox": "old",
    "session": "sbx_1",
    "team": "team_1",
    "until": "2026-03-01T10:10:00Z",
    "workdir": "/vercel/sandbox/workspace"
  }
}
`
	oldProcess = `{
  "version": 1,
  "id": "p1",
  "sandboxId": "old",
  "kind": "command",
  "mode": "background",
  "status": "running",
  "provider": "vercel",
  "command": "make",
  "args": [],
  "env": {
    "TOKEN": "\u003credacted\u003e"
  },
  "streamId": "p1",
  "streamClientId": "sandbox-process:p1",
  "startedAt": "2026-03-01T10:00:00Z",
  "metadata": {
    "launcher": 4711,
    "leaving": true,
    "output": "went to a terminal, and is not recorded",
    "remote": "sbx_1/cmd_1",
    "stopping": true
  }
}
`
	oldStream = `{"version":1,"at":"2026-03-01T10:00:00Z","seq":1,"type":"status","sandboxId":"old","processId":"p1","data":{"args":[],"command":"make","cwd":null,"status":"running"}}
{"version":1,"at":"2026-03-01T10:00:00Z","seq":2,"type":"stdout","sandboxId":"old","processId":"p1","data":"out","offset":3}
{"version":1,"at":"2026-03-01T10:00:00Z","seq":3,"type":"status","sandboxId":"old","processId":"p1","data":{"status":"running","truncated":true}}
{"version":1,"at":"2026-03-01T10:00:00Z","seq":4,"type":"error","sandboxId":"old","processId":"p1","data":{"message":"it broke"}}
`
)

// Records of an earlier launch are read, and spelled the same when they are
// written again: an earlier launch may read them, too.
func TestOldRecords(t *testing.T) {
	s, dir := open(t)
	place := filepath.Join(dir, "sandboxes", "old", "processes")
	must(t, os.MkdirAll(place, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "sandboxes/old/sandbox.json"), []byte(oldSandbox), 0o600))
	must(t, os.WriteFile(filepath.Join(place, "p1.json"), []byte(oldProcess), 0o600))
	must(t, os.WriteFile(filepath.Join(place, "p1.ndjson"), []byte(oldStream), 0o600))

	b, err := s.Sandbox("old")
	want := Remote{Project: "prj_1", Region: "iad1", Sandbox: "old", Session: "sbx_1", Team: "team_1", Until: time.Date(2026, 3, 1, 10, 10, 0, 0, time.UTC), Workdir: "/vercel/sandbox/workspace"}
	if err != nil || b.Remote != want || b.Status != Active {
		t.Errorf("%+v, %v", b, err)
	}
	p, err := s.Process("old", "p1")
	meta := Metadata{Launcher: 4711, Leaving: true, Output: "went to a terminal, and is not recorded", Remote: RemoteCommand{"sbx_1", "cmd_1"}, Stopping: true}
	if err != nil || p.Metadata != meta || !p.Metadata.Remote.Known() || p.Status != Running {
		t.Errorf("%+v, %v", p, err)
	}
	for text, v := range map[string]any{oldSandbox: b, oldProcess: p} {
		if got, err := json.MarshalIndent(v, "", "  "); err != nil || string(got)+"\n" != text {
			t.Errorf("written again: %v\n%s\nwant\n%s", err, got, text)
		}
	}

	_, err = s.MarkLost("old", "p1", SandboxStopped)
	must(t, err)
	var text, message string
	var truncated bool
	n, err := s.Chunks("old", "p1", int64(0), func(c Chunk) error {
		text += c.Text()
		message += c.Message()
		truncated = truncated || c.Truncated()
		return nil
	})
	if err != nil || text != "out" || message != "it broke"+SandboxStopped || !truncated || n <= int64(len(oldStream)) {
		t.Errorf("%d, %q, %q, %v, %v", n, text, message, truncated, err)
	}
}

// A name elsewhere that has no session is kept, but nobody can be asked for it.
func TestOldRemote(t *testing.T) {
	var m Metadata
	must(t, json.Unmarshal([]byte(`{"remote":"cmd_1"}`), &m))
	if m.Remote == (RemoteCommand{}) || m.Remote.Known() {
		t.Errorf("%+v", m)
	}
	if text, err := json.Marshal(m); err != nil || string(text) != `{"remote":"cmd_1"}` {
		t.Errorf("%s, %v", text, err)
	}
}
