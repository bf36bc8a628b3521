package vercel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/fake"
)

// "~" is the home directory there: for the program, the workspace and copies.
func TestHome(t *testing.T) {
	w, _ := named(t, fake.Config{})
	w.files("a", "a")
	spec := w.spec(`test "$PWD" = "$HOME/new/dir" && cat /vercel/workspace/a && echo there >~/told`)
	spec.Dir = "~/new/dir"
	t.Chdir(w.dir)
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 || w.read(w.out) != "a" {
		t.Fatalf("%+v %v %s", res, err, w.read(w.err))
	}
	k := &Kept{Client: w.client, Name: "box", Workdir: "/vercel/workspace"}
	got := filepath.Join(t.TempDir(), "told")
	must(t, k.Pull(t.Context(), "~/told", got))
	must(t, k.Push(t.Context(), got, "~/pushed"))
	must(t, k.Pull(t.Context(), "~/pushed", got+"2"))
	if text, err := os.ReadFile(got + "2"); err != nil || string(text) != "there\n" {
		t.Errorf("%q %v", text, err)
	}
	must(t, k.Delete(t.Context()))
	w.back.Workdir = "~/ws"
	w.ok(0, `test "$PWD" = "$HOME/ws" && cat a && echo b >b`)
	w.has("b", "b\n")
	for _, dir := range []string{"~", "~/", "~x/y", "~/../.."} {
		w.back.Workdir = dir
		if err := w.back.Supports(w.spec("true")); err == nil {
			t.Errorf("%s is taken", dir)
		}
	}
}

// At its end a run says what the service counted, once, and how the sandbox was
// left; one that was never made is not left.
func TestLeft(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	var all []Left
	w.back.Left = func(l Left) { all = append(all, l) }
	w.back.VCPUs = 4
	w.ok(0, "true")
	w.back.Keep = true
	w.ok(0, "true")
	w.fault("GET /v2/sandboxes/* status=403")
	if _, err := w.run("true"); err == nil {
		t.Error("no error")
	}
	if len(all) != 2 || !all[0].Ran || all[0].Time <= 0 || all[0].VCPUs != 4 || !all[0].Until.IsZero() || all[1].Until.IsZero() || all[1].Time != 0 {
		t.Errorf("%+v", all)
	}
}

// Snapshots do not pile up: the newest few stay, and those expire; the one that
// the next session begins with is not removed.
func TestSnapshotsKept(t *testing.T) {
	t.Parallel()
	w, _ := named(t, fake.Config{})
	for range 4 {
		w.ok(0, "true")
	}
	k := &Kept{Client: w.client, Name: "box"}
	var all []api.Snapshot
	for range 500 { // the service deletes them when it likes
		var err error
		all, err = k.Snapshots(t.Context())
		must(t, err)
		if len(all) <= snapshotCount {
			break
		}
	}
	if len(all) != snapshotCount || all[0].ExpiresAt.Time().Sub(all[0].LastUsedAt.Time()) != snapshotExpiry {
		t.Fatalf("%d snapshots: %+v", len(all), all)
	}
	if err := k.DropSnapshot(t.Context(), all[0].ID); err == nil || !strings.Contains(err.Error(), "goes on from") {
		t.Error(err)
	}
	must(t, k.DropSnapshot(t.Context(), all[1].ID))
	w.back.Snapshots = Snapshots{Count: 1, Expiry: -1}
	w.ok(0, "true")
	found, err := w.client.Get(t.Context(), "box", false)
	must(t, err)
	if s := found.Sandbox; s.KeepLastSnapshots == nil || s.KeepLastSnapshots.Count != 1 || s.SnapshotExpiration != 0 {
		t.Errorf("%+v", s)
	}
}
