//go:build system

package workspace

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"egressd/internal/run/workspace/redact"
)

// The attack works on whoever runs git on such a repository: as the guard's twin.
func TestEvilIsEvil(t *testing.T) {
	p := little(t, map[string]string{"a.go": "a\n", ".gitattributes": "*.go filter=evil\n"})
	mark := evil(t, p)
	p.write("a.go", "changed\n")
	cmd := exec.CommandContext(t.Context(), "git", "add", "-A")
	cmd.Dir = p.dir
	_ = cmd.Run() // the filter may make it fail
	if _, err := os.Stat(mark); err != nil {
		t.Error("git add -A on this repository starts nothing: the tests below prove nothing")
	}
}

// Capture, run, collect and pull of 500 files, with a hostile .git on either side.
func TestThereAndBack(t *testing.T) {
	ctx := context.Background()
	p := large(t)
	p.write("src/2.go", "not committed\n")
	p.write("bin/0.dat", binary(3000))
	if err := os.Remove(p.path("src/3.go")); err != nil {
		t.Fatal(err)
	}
	p.write("notes/new.txt", "untracked\n")
	p.write("notes/left.md", "not asked for\n")
	p.write("ignored/x", "ignored\n")
	p.write("staged.txt", "staged\n")
	p.link("run.sh", "notes/new.txt.link")
	p.git("add", "staged.txt")
	mark := evil(t, p)
	in, work := filepath.Join(t.TempDir(), "in"), place{t, filepath.Join(t.TempDir(), "work")}
	done, err := Capture(ctx, Source{Dir: p.path("src"), Untracked: []string{"notes/new.*"}}, in)
	if err != nil {
		t.Fatal(err)
	}
	if done.Made || done.Manifest.BaseRef != openHead(t, p) || len(done.Manifest.UntrackedFiles) != 1 || len(done.Manifest.DeniedPaths) != 0 || done.Files < 500 {
		t.Errorf("captured: %+v", done)
	}
	if err := Materialise(ctx, in, work.dir); err != nil {
		t.Fatal(err)
	}
	want := p.files()
	delete(want, "notes/left.md")
	delete(want, "ignored/x")
	sameFiles(t, work.files(), want)
	if got := work.git("rev-parse", "HEAD"); got != done.Manifest.BaseRef {
		t.Errorf("HEAD inside is %s", got)
	}
	if got := work.git("log", "--format=%s"); got != "one" {
		t.Errorf("history: %q", got)
	}

	inside, want := changes(t, work, mark)

	out, err := Collect(ctx, in, work.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Refused) != 0 {
		t.Errorf("refused: %v", out.Refused)
	}
	result := filepath.Join(t.TempDir(), "result")
	if err := out.Write(result); err != nil {
		t.Fatal(err)
	}
	if out, err = ReadResult(result); err != nil {
		t.Fatal(err)
	}

	// Into a repository that has moved on, onto a branch; and onto a clean one.
	before := p.files()
	landed, err := Pull(ctx, Target{Dir: p.dir}, out)
	if err != nil || !strings.HasPrefix(landed.Branch, "warrant/") {
		t.Fatalf("%+v %v", landed, err)
	}
	sameFiles(t, p.files(), before)
	for _, m := range []string{mark, inside} {
		if text, err := os.ReadFile(m); err == nil {
			t.Errorf("a program was started: %s", text)
		}
	}
	for _, branch := range []string{landed.Branch, "main"} {
		clone := place{t, filepath.Join(t.TempDir(), "clone")}
		(place{t, "/"}).git("-c", "core.hooksPath=/dev/null", "clone", "-q", "-b", branch, p.dir, clone.dir)
		if branch == "main" {
			clone.git("config", "core.autocrlf", "false")
			clone.git("rm", "-q", "--cached", "-r", ".")
			clone.git("-c", "core.attributesFile=/dev/null", "reset", "-q", "--hard")
			writeRaw(t, clone)
			if landed, err := Pull(ctx, Target{Dir: clone.dir}, out); err != nil || landed.Branch != "" || landed.Paths == 0 {
				t.Fatalf("%+v %v", landed, err)
			}
		} else {
			writeRaw(t, clone)
		}
		sameFiles(t, clone.files(), want)
	}
}

// round captures p, lets run change the copy, and collects.
func round(t *testing.T, p place, secrets []redact.Secret, run func(work place)) (in string, out *Result) {
	t.Helper()
	in, work := filepath.Join(t.TempDir(), "in"), place{t, filepath.Join(t.TempDir(), "work")}
	if _, err := Capture(t.Context(), Source{Dir: p.dir, Untracked: []string{"**"}}, in); err != nil {
		t.Fatal(err)
	}
	if err := Materialise(t.Context(), in, work.dir); err != nil {
		t.Fatal(err)
	}
	run(work)
	out, err := Collect(t.Context(), in, work.dir, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}

// What is denied does not travel: committed, in the history, changed or untracked.
func TestDenied(t *testing.T) {
	p := little(t, map[string]string{".env": "TOKEN=committed-0001\n", "old.key": "history-0002\n"})
	p.git("rm", "-q", "old.key")
	p.git("commit", "-q", "-m", "two")
	p.write(".env", "TOKEN=changed-0003\n")
	p.write("sub/new.pem", "untracked-0004\n")
	p.write("README", "changed\n")
	in, out := round(t, p, nil, func(work place) {
		if _, err := os.Lstat(work.path(".env")); err == nil {
			t.Error(".env is in the work tree of the run")
		}
		all := work.git("cat-file", "--batch-all-objects", "--batch")
		for _, secret := range []string{"0001", "0002", "0003", "0004"} {
			if strings.Contains(all, secret) {
				t.Errorf("%s is among the objects", secret)
			}
		}
		work.write("README", "by the run\n")
	})
	m, err := ReadManifest(in)
	if err != nil || strings.Join(m.DeniedPaths, " ") != ".env sub/new.pem" {
		t.Errorf("%v %v", m.DeniedPaths, err)
	}
	// The result still belongs to the commit that the person has.
	p.git("checkout", "-q", "--", "README")
	p.git("checkout", "-q", "--", ".env")
	landed, err := Pull(t.Context(), Target{Dir: p.dir}, out)
	if err != nil || landed.Branch != "" || p.read("README") != "by the run\n" || p.read(".env") != "TOKEN=committed-0001\n" {
		t.Errorf("%+v %v %q", landed, err, p.read("README"))
	}
}

// Secrets are gone from what leaves, and the diff still applies.
func TestSecrets(t *testing.T) {
	const value = "ghp_0123456789abcdefABCDEF"
	secrets := []redact.Secret{{Name: "TOKEN", Value: value}}
	p := little(t, map[string]string{"held": "x " + value + "\n", "image": "\x00\xff" + strings.Repeat("\x01\x00", 600)})
	_, out := round(t, p, secrets, func(work place) {
		work.write("README", "hello\n"+value+"\n"+base64.StdEncoding.EncodeToString([]byte("u:"+value))+"\n")
		work.write("image", "\x00\xff"+strings.Repeat("\x01\x00", 600)+value+"\xfe")
		work.write("held", "changed\n")
		work.write("dir/"+value, "x")
		work.link("/"+value, "link")
	})
	if bytes.Contains(out.Diff, []byte(value)) {
		t.Error("the diff has the secret")
	}
	if len(out.Refused) != 2 || strings.Contains(fmt.Sprint(out), value) {
		t.Errorf("refused: %+v", out.Refused)
	}
	if landed, err := Pull(t.Context(), Target{Dir: p.dir}, out); err != nil || landed.Branch != "" {
		t.Fatalf("%+v %v", landed, err)
	}
	if got := p.read("image"); got != "\x00\xff"+strings.Repeat("\x01\x00", 600)+"[REDACTED:TOKEN]\xfe" {
		t.Errorf("image: %q", got)
	}
	if got := p.read("README"); got != "hello\n[REDACTED:TOKEN]\ndT[REDACTED:TOKEN]=\n" && !strings.Contains(got, "[REDACTED:TOKEN]") {
		t.Errorf("README: %q", got)
	}
	if to, err := os.Readlink(p.path("link")); err != nil || to != "/[REDACTED:TOKEN]" {
		t.Errorf("link: %q %v", to, err)
	}
}

// A blob that was changed is not used, whichever it is.
func TestChangedBlobs(t *testing.T) {
	p := little(t, nil)
	p.write("README", "changed\n")
	p.write("untracked", "untracked\n")
	in := filepath.Join(t.TempDir(), "in")
	if _, err := Capture(t.Context(), Source{Dir: p.dir, Untracked: []string{"untracked"}}, in); err != nil {
		t.Fatal(err)
	}
	blobs, err := os.ReadDir(filepath.Join(in, blobsName))
	if err != nil || len(blobs) != 3 {
		t.Fatal(blobs, err)
	}
	for _, b := range blobs {
		name := filepath.Join(in, blobsName, b.Name())
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append(bytes.Clone(data), '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "work")
		if err := Materialise(t.Context(), in, dir); err == nil || !strings.Contains(err.Error(), "was changed") {
			t.Errorf("%s: %v", b.Name(), err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("something was made")
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A link that is there already does not lead a pull into .git.
func TestPullPastLinks(t *testing.T) {
	p := little(t, nil)
	_, out := round(t, p, nil, func(work place) { work.write("x/hooks/post-checkout", "#!/bin/sh\n") })
	p.link(".git", "x")
	landed, err := Pull(t.Context(), Target{Dir: p.dir}, out)
	if err != nil || landed.Branch == "" {
		t.Errorf("%+v %v", landed, err)
	}
	if _, err := os.Stat(p.path(".git/hooks/post-checkout")); err == nil {
		t.Error("a hook was written")
	}
	// A branch that is checked out stays.
	if err := os.Remove(p.path("x")); err != nil {
		t.Fatal(err)
	}
	p.git("checkout", "-q", landed.Branch)
	if _, err := Pull(t.Context(), Target{Dir: p.dir, Branch: true}, out); err == nil || !strings.Contains(err.Error(), "checked out") {
		t.Errorf("%v", err)
	}
}

// Nothing of a person is overwritten: not an untracked file, nor a staged change.
func TestPullInTheWay(t *testing.T) {
	p := little(t, nil)
	_, out := round(t, p, nil, func(work place) { work.write("new", "by the run\n") })
	p.write("new", "mine\n")
	if landed, err := Pull(t.Context(), Target{Dir: p.dir}, out); err != nil || landed.Branch == "" || p.read("new") != "mine\n" {
		t.Errorf("%+v %v", landed, err)
	}
	if err := os.Remove(p.path("new")); err != nil {
		t.Fatal(err)
	}
	p.write("staged", "x\n")
	p.git("add", "staged")
	if landed, err := Pull(t.Context(), Target{Dir: p.dir}, out); err != nil || landed.Branch == "" {
		t.Errorf("%+v %v", landed, err)
	}
	p.git("reset", "-q")
	if landed, err := Pull(t.Context(), Target{Dir: p.dir}, out); err != nil || landed.Branch != "" || p.read("new") != "by the run\n" {
		t.Errorf("%+v %v", landed, err)
	}
	empty, err := Pull(t.Context(), Target{Dir: p.dir}, &Result{})
	if err != nil || empty != (Landed{}) {
		t.Errorf("%+v %v", empty, err)
	}
}
