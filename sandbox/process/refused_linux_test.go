package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"egressd/event"
	"egressd/gate"
	"egressd/sandbox"
)

// refusedIn runs a script in a home directory with a start-up file, a key and a
// project, and reports what is recorded as refused: "wish path reason".
func refusedIn(t *testing.T, b *Backend, script string) (home string, told []string) {
	t.Helper()
	home = tempDir(t, "/tmp")
	work := filepath.Join(home, "src", "app")
	for _, dir := range []string{work, filepath.Join(home, ".ssh"), filepath.Join(work, ".git", "hooks")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{".bashrc", ".netrc", ".ssh/id_ed25519", "src/app/.git/config"} {
		if err := os.WriteFile(filepath.Join(home, file), []byte("kept\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rec := &untilRefused{told: filepath.Join(work, "told")}
	b.Gate = gate.Config{Events: rec}
	tries := "TRIES=3"
	if !b.hooks.skip["notices"] {
		tries = "TRIES=1200" // a minute
	}
	res := run(t, b, sandbox.Spec{Dir: work, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + home, tries}, Argv: []string{"/bin/sh", "-c", script}})
	if res.err != nil {
		t.Fatal(res.err)
	}
	for _, e := range rec.events {
		if e.Type == "file.refused" {
			told = append(told, e.Wanted+" "+strings.TrimPrefix(e.Path, home+"/")+" "+e.Reason)
		}
	}
	slices.Sort(told)
	return home, told
}

// untilRefused is a recorder that makes a file once something is refused.
type untilRefused struct {
	recorder
	told string
}

func (r *untilRefused) Emit(e event.Event) error {
	if _, ok := e.Body.(*event.FileRefused); ok {
		_ = os.WriteFile(r.told, nil, 0o644)
	}
	return r.recorder.Emit(e)
}

// untilTold does something until it is told of, at most TRIES times: when covers are
// watched is told to nobody inside.
func untilTold(do string) string {
	return `i=0; until [ -e told ] || [ $i = $TRIES ]; do ` + do + `; i=$((i+1)); sleep 0.05; done`
}

// TestRefusedFiles looks for the record of what a program was refused, once for
// each wish, and for none of what it may do.
func TestRefusedFiles(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		want         []string
	}{
		{"appended", `for i in 1 2; do echo x >>~/.bashrc; done`, []string{"write .bashrc runs_later"}},
		{"made", `mkdir ~/new; cd ..; mkdir ../new2`, []string{"write new home", "write new2 home"}},
		{"renamed over", `echo x >f; mv -f f .git/config`, []string{"write src/app/.git/config runs_later"}},
		{"through a link", `ln -s ~/.bashrc l; echo x >>l`, []string{"write .bashrc runs_later"}},
		{"a secret", untilTold(`cat ~/.netrc ~/.netrc`), []string{"read .netrc credential"}},
		{"a directory of secrets", untilTold(`ls ~/.ssh; cat ~/.ssh/id_ed25519`), []string{"read .ssh credential"}},
		{"what is allowed", `mkdir d; echo x >>d/f; mv d/f d/g; mkdir /tmp/x; echo x >>/tmp/x/f; echo x >>/proc/sys/kernel/core_pattern`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, told := refusedIn(t, without("delay"), tt.script); !slices.Equal(told, tt.want) {
				t.Errorf("%q, want %q", told, tt.want)
			}
			if _, told := refusedIn(t, without("notices"), tt.script); told != nil {
				t.Errorf("without the layer: %q", told)
			}
		})
	}
}

// TestRefusedLearn looks for writes to files that would be new or are emptied first:
// they are told where somebody wants to learn of all.
func TestRefusedLearn(t *testing.T) {
	const script = `echo x >~/new; echo x >~/.bashrc; set -C; echo x >~/exclusive`
	learning := new(Backend)
	learning.Learn = true
	if _, told := refusedIn(t, learning, script); !slices.Equal(told, []string{"write .bashrc runs_later", "write exclusive home", "write new home"}) {
		t.Errorf("%q", told)
	}
	if _, told := refusedIn(t, new(Backend), script); told != nil {
		t.Errorf("without learning: %q", told)
	}
}

// TestRefusedFlood asks for more than is told.
func TestRefusedFlood(t *testing.T) {
	_, told := refusedIn(t, new(Backend), `i=0; while [ $i -lt 300 ]; do mkdir ~/d$i; i=$((i+1)); done`)
	if len(told) != 200 {
		t.Errorf("%d are told", len(told))
	}
}
