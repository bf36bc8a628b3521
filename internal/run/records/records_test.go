package records

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open makes a store with one sandbox called box.
func open(t *testing.T) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "egressd")
	s, err := Open(dir, nil)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	must(t, s.Create(Sandbox{Name: "box", Tier: "process", Workspace: "/w"}))
	return s, dir
}

func start(t *testing.T, s *Store) *Recorder {
	t.Helper()
	r, err := s.Start(Process{
		Sandbox: "box", Kind: "command", Mode: "foreground", Provider: "process",
		Command: "sh", Args: []string{"-c", "echo hi"}, Env: map[string]string{"TOKEN": "secret"},
	})
	must(t, err)
	return r
}

func chunks(t *testing.T, s *Store, id string) []Chunk {
	t.Helper()
	var all []Chunk
	_, err := s.Chunks("box", id, 0, func(c Chunk) error { all = append(all, c); return nil })
	must(t, err)
	return all
}

func code(n int) *int { return &n }

func TestSandboxes(t *testing.T) {
	s, dir := open(t)
	if err := s.Create(Sandbox{Name: "box"}); !errors.Is(err, ErrExists) {
		t.Errorf("a second box: %v", err)
	}
	for _, bad := range []string{"", ".", "..", "a/b", "../x", "a\x00", "-x", strings.Repeat("x", 81), "é"} {
		if err := s.Create(Sandbox{Name: bad}); err == nil {
			t.Errorf("the name %q is taken", bad)
		}
		if _, err := s.Sandbox(bad); err == nil {
			t.Errorf("the name %q is looked for", bad)
		}
	}
	if err := s.Update("none", func(*Sandbox) {}); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	must(t, s.Update("box", func(b *Sandbox) { b.Status, b.Name = Stopped, "other" }))
	b, err := s.Sandbox("box")
	if err != nil || b.Status != Stopped || b.Name != "box" || b.Created.IsZero() {
		t.Errorf("%+v, %v", b, err)
	}
	must(t, s.Create(Sandbox{Name: "a"}))
	must(t, os.WriteFile(filepath.Join(dir, "sandboxes/a/sandbox.json"), []byte(`{"version":2,"name":"a"}`), 0o600))
	all, err := s.Sandboxes()
	if len(all) != 1 || all[0].Name != "box" || !errors.Is(err, ErrDamaged) {
		t.Errorf("%v, %v", all, err)
	}
	must(t, s.Remove("a"))
	r := start(t, s)
	if err := s.Remove("box"); err == nil || !strings.Contains(err.Error(), "running") {
		t.Errorf("removed under a running process: %v", err)
	}
	must(t, r.Finish("", code(0), ""))
	must(t, s.Remove("box"))
	if _, err := s.Sandbox("box"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Chmod(dir, 0o750))
	if _, err := Open(dir, nil); err == nil {
		t.Error("a store that others may look into is opened")
	}
}

func TestProcess(t *testing.T) {
	s, dir := open(t)
	r := start(t, s)
	id := r.Process().ID
	r.Write(ChunkStdout, []byte("out\x00 \xe2\x82"))
	r.Write(ChunkStderr, []byte("err\n"))
	r.Write(ChunkStdout, []byte("\xac \xff\n"))
	p, err := s.Process("box", id)
	if err != nil || p.Status != Running || p.ClientID != "sandbox-process:"+id || p.Env["TOKEN"] != Redacted {
		t.Errorf("%+v, %v", p, err)
	}
	must(t, r.Finish("", code(3), ""))
	must(t, r.Finish("", code(4), ""))
	r.Write(ChunkStdout, []byte("late"))
	var got []string
	for i, c := range chunks(t, s, id) {
		got = append(got, c.Type+" "+string(c.Data))
		if c.Seq != i+1 || c.Sandbox != "box" || c.Process != id || c.At.IsZero() {
			t.Errorf("%+v", c)
		}
	}
	want := `status {"args":["-c","echo hi"],"command":"sh","cwd":null,"status":"running"}|stdout "out "|stderr "err\n"|` +
		"stdout \"€ \ufffd\\n\"" + `|exit {"exitCode":3,"status":"failed"}`
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	p, err = s.Process("box", id)
	if err != nil || p.Status != Failed || *p.ExitCode != 3 || p.Ended == nil {
		t.Errorf("%+v, %v", p, err)
	}
	res, err := s.Result("box", id)
	if err != nil || res.Output != "out € \ufffd\n" || res.Error != "err\n" || res.ExitCode != 3 || res.Success || res.Command != "sh -c echo hi" {
		t.Errorf("%+v, %v", res, err)
	}
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if data, _ := os.ReadFile(path); strings.Contains(string(data), "secret") {
			t.Errorf("%s holds the value of a variable", path)
		}
		return err
	}))
}

// A launcher that dies leaves a process that nobody knows the end of.
func TestLauncherDies(t *testing.T) {
	s, dir := open(t)
	r := start(t, s)
	id := r.Process().ID
	r.Write(ChunkStdout, []byte("half"))
	other, err := Open(dir, nil)
	must(t, err)
	defer other.Close()
	if p, err := other.Process("box", id); err != nil || p.Status != Running {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := other.Attach("box", id); err == nil {
		t.Error("two record one process")
	}
	r.alive.Close() // what the kernel does when a process dies
	_, err = r.file.WriteString(`{"version":1,"se`)
	must(t, err)
	p, err := other.Process("box", id)
	if err != nil || p.Status != Lost || p.Metadata.Reason != "launcher_died" {
		t.Errorf("%+v, %v", p, err)
	}
	all := chunks(t, other, id)
	if last := all[len(all)-1]; last.Type != ChunkExit || last.Seq != len(all) {
		t.Errorf("%+v", all)
	}
	must(t, other.Follow(context.Background(), "box", id, 0, func(Chunk) error { return nil }))
}

// A process that runs elsewhere is gone on with.
func TestAttach(t *testing.T) {
	s, _ := open(t)
	r := start(t, s)
	id := r.Process().ID
	must(t, r.Remote(RemoteCommand{"session_1", "cmd_1"}))
	r.Write(ChunkStdout, []byte("one"))
	r.Write(ChunkStderr, []byte("err"))
	r.alive.Close()
	_, err := r.file.WriteString(`{"version":1,"se`)
	must(t, err)
	if p, err := s.Process("box", id); err != nil || p.Status != Running {
		t.Errorf("%+v, %v", p, err)
	}
	again, err := s.Attach("box", id)
	must(t, err)
	if again.Offset(ChunkStdout) != 3 || again.Offset(ChunkStderr) != 3 {
		t.Error("where to go on is not known")
	}
	again.Write(ChunkStdout, []byte(" two"))
	must(t, again.Finish("", code(0), ""))
	res, err := s.Result("box", id)
	if err != nil || res.Output != "one two" || !res.Success {
		t.Errorf("%+v, %v", res, err)
	}
	for i, c := range chunks(t, s, id) {
		if c.Seq != i+1 {
			t.Errorf("chunk %d has number %d", i+1, c.Seq)
		}
	}
	if _, err := s.Attach("box", id); err == nil {
		t.Error("a process that is over is recorded again")
	}
}

func TestStopping(t *testing.T) {
	s, _ := open(t)
	r := start(t, s)
	id := r.Process().ID
	if p, err := s.MarkStopping("box", id); err != nil || p.Over() {
		t.Errorf("%+v, %v", p, err)
	}
	must(t, r.Remote(RemoteCommand{"session_1", "cmd_1"})) // its launcher learns it only now
	must(t, r.Finish("", code(143), ""))
	if p, err := s.Process("box", id); err != nil || p.Status != Killed || *p.ExitCode != 143 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestMarkAllLost(t *testing.T) {
	s, _ := open(t)
	running, over := start(t, s), start(t, s)
	must(t, over.Finish("", code(0), ""))
	must(t, running.Remote(RemoteCommand{"session_1", "cmd_1"}))
	must(t, s.MarkAllLost("box", "sandbox_stopped"))
	all, err := s.Processes("box")
	must(t, err)
	for _, p := range all {
		want := Exited
		if p.ID == running.Process().ID {
			want = Lost
		}
		if p.Status != want {
			t.Errorf("%+v", p)
		}
	}
	must(t, running.Finish("", code(0), "")) // it stays lost
	if p, err := s.Process("box", running.Process().ID); err != nil || p.Status != Lost || *p.ExitCode != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestFollowAndWait(t *testing.T) {
	s, dir := open(t)
	r := start(t, s)
	id := r.Process().ID
	reader, err := Open(dir, nil)
	must(t, err)
	defer reader.Close()
	var text strings.Builder
	done := make(chan error, 1)
	seen := make(chan struct{}, 100)
	go func() {
		done <- reader.Follow(context.Background(), "box", id, 0, func(c Chunk) error {
			text.WriteString(c.Text())
			seen <- struct{}{}
			return nil
		})
	}()
	<-seen
	for i := range 20 {
		r.Write(ChunkStdout, fmt.Appendf(nil, "%d ", i))
	}
	if _, err := reader.Wait(context.Background(), "box", id, time.Millisecond); err == nil || err.Error() != "sandbox_process_wait_timeout:"+id {
		t.Error(err)
	}
	must(t, r.Finish("", code(0), "could not"))
	must(t, <-done)
	if text.String() != "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 " {
		t.Errorf("followed %q", text.String())
	}
	p, err := reader.Wait(context.Background(), "box", id, 0)
	if err != nil || p.Status != Exited {
		t.Errorf("%+v, %v", p, err)
	}
	if res, err := reader.Result("box", id); err != nil || res.Error != "could not" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	s, _ := open(t)
	r := start(t, s)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				r.Write([]string{ChunkStdout, ChunkStderr}[i%2], []byte("line\n"))
			}
		})
	}
	wg.Wait()
	must(t, r.Finish(Killed, nil, ""))
	all := chunks(t, s, r.Process().ID)
	for i, c := range all {
		if c.Seq != i+1 {
			t.Fatalf("chunk %d has number %d", i+1, c.Seq)
		}
	}
	if last := all[len(all)-1]; len(all) != 402 || string(last.Data) != `{"exitCode":null,"status":"killed"}` {
		t.Errorf("%d chunks, the last %+v", len(all), last)
	}
}

func TestStreamBounds(t *testing.T) {
	s, _ := open(t)
	r := start(t, s)
	r.size = maxStream - 10
	for range 3 {
		r.Write(ChunkStdout, []byte("more than ten bytes"))
	}
	must(t, r.Finish("", code(0), ""))
	all := chunks(t, s, r.Process().ID)
	if len(all) != 3 || string(all[1].Data) != `{"status":"running","truncated":true}` || all[2].Type != ChunkExit {
		t.Errorf("%+v", all)
	}
}

func TestStreamErrors(t *testing.T) {
	s, dir := open(t)
	r := start(t, s)
	id := r.Process().ID
	must(t, r.Finish("", code(0), ""))
	file := filepath.Join(dir, "sandboxes/box/processes", id+".ndjson")
	for text, want := range map[string]string{
		`{"version":2,"seq":1}` + "\n":   "invalid_sandbox_process_stream_version:2",
		"[1]\n":                          "invalid_sandbox_process_stream_chunk",
		"{\"version\":\n":                "invalid_sandbox_process_stream_chunk",
		strings.Repeat("x", maxLine+100): "invalid_sandbox_process_stream_chunk",
		"\n \n":                          "",
		`{"version":1,"seq":1,"type":"status"}` + "\n\n" + `{"version":1,"seq":2,"type":"exit"}`: "",
	} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		n := 0
		_, err := s.Chunks("box", id, 0, func(Chunk) error { n++; return nil })
		if want == "" && (err != nil || n != strings.Count(text, "seq")) || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%.60q: %d chunks, %v", text, n, err)
		}
	}
	must(t, os.Remove(file))
	if _, err := s.Chunks("box", id, 0, nil); err == nil || !strings.HasPrefix(err.Error(), "sandbox_process_stream_missing") {
		t.Error(err)
	}
	if _, err := s.Chunks("box", "none", 0, nil); err == nil || !strings.HasPrefix(err.Error(), "sandbox_process_not_found") {
		t.Error(err)
	}
}

func TestPrune(t *testing.T) {
	s, dir := open(t)
	first := start(t, s) // stays: it is running
	for i := range maxProcesses + 5 {
		base := filepath.Join(dir, "sandboxes/box/processes", fmt.Sprintf("q%04d", i))
		must(t, os.WriteFile(base+".json", fmt.Appendf(nil, `{"version":1,"id":"q%04d","status":"exited"}`, i), 0o600))
		must(t, os.WriteFile(base+".ndjson", nil, 0o600))
		must(t, os.WriteFile(base+".alive", nil, 0o600))
	}
	must(t, start(t, s).Finish("", code(0), ""))
	all, err := s.Processes("box")
	must(t, err)
	if len(all) != maxProcesses || !slices.ContainsFunc(all, func(p Process) bool { return p.ID == first.Process().ID }) {
		t.Errorf("%d processes, or the running one is gone", len(all))
	}
	list, err := os.ReadDir(filepath.Join(dir, "sandboxes/box/processes"))
	if err != nil || len(list) != 3*maxProcesses {
		t.Errorf("%d files, %v", len(list), err)
	}
	must(t, first.Finish("", code(0), ""))
}
