package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"egressd/sandbox"
)

// Ways to a protected file other than its own name.
func TestProtectOtherNames(t *testing.T) {
	for _, tt := range []struct{ name, policy, script string }{
		{"the link that names it", "link", "rm -f link && echo evil > link"},
		{"a link behind the link", "link2", "rm -f link && echo evil > link"},
		{"moving the link", "link", "mv link gone && echo evil > link"},
		{"a directory whose parent is read-only", "a/b/c/policy", "chmod 755 a a/b && mv a/b/c a/b/x && mkdir a/b/c && echo evil > a/b/c/policy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			work := tempDir(t, "/var/tmp")
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(os.MkdirAll(filepath.Join(work, "a/b/c"), 0o755))
			for _, f := range []string{"policy", "a/b/c/policy"} {
				must(os.WriteFile(filepath.Join(work, f), []byte("good\n"), 0o644))
			}
			must(os.Symlink("policy", filepath.Join(work, "link")))
			must(os.Symlink(filepath.Join(work, "link"), filepath.Join(work, "link2")))
			must(os.Chmod(filepath.Join(work, "a/b"), 0o555))
			must(os.Chmod(filepath.Join(work, "a"), 0o555))
			t.Cleanup(func() {
				os.Chmod(filepath.Join(work, "a"), 0o755)
				os.Chmod(filepath.Join(work, "a/b"), 0o755)
			})
			path := filepath.Join(work, tt.policy)
			spec := sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", tt.script}, Protect: []string{path}}
			if res := run(t, &Backend{}, spec); res.err != nil || res.ExitCode == 0 {
				t.Errorf("it worked: %v %s", res.err, res.out)
			}
			if data, err := os.ReadFile(path); string(data) != "good\n" {
				t.Errorf("the file is now %q, %v", data, err)
			}
			if res := run(t, without("protect", "replaced"), spec); res.ExitCode != 0 {
				t.Errorf("without the layer it was stopped all the same: %s", res.out)
			}
		})
	}
}

func TestProtectHardLink(t *testing.T) {
	needNamespaces(t)
	work := tempDir(t, "/var/tmp")
	path := filepath.Join(work, "policy")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, filepath.Join(work, "second")); err != nil {
		t.Fatal(err)
	}
	_, err := new(Backend).Run(t.Context(), sandbox.Spec{Argv: []string{"/bin/true"}, Dir: "/", Protect: []string{path}})
	if err == nil || !strings.Contains(err.Error(), "hard link") {
		t.Errorf("got %v", err)
	}
}

// What a shell's <(...) makes has no content to protect.
func TestProtectPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	spec := sandbox.Spec{Argv: []string{"/bin/true"}, Protect: []string{"/proc/self/fd/" + strconv.Itoa(int(r.Fd()))}}
	if res := run(t, &Backend{}, spec); res.err != nil || res.ExitCode != 0 {
		t.Error(res.err, res.out)
	}
}

// TestProtect attacks a policy file in the working directory.
func TestProtect(t *testing.T) {
	for _, tt := range []struct{ name, attack, target string }{
		{"overwrite", "overwrite", "dir/policy.yaml"},
		{"replace", "replace", "dir/policy.yaml"},
		{"remove", "remove", "dir/policy.yaml"},
		{"rename", "rename", "dir/policy.yaml"},
		{"rename its directory", "rename", "dir"},
		{"remove its directory", "remove", "dir"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := func() (string, string) {
				work := tempDir(t, "/var/tmp")
				policy := filepath.Join(work, "dir", "policy.yaml")
				if err := os.Mkdir(filepath.Dir(policy), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(policy, []byte("allow: []\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return work, policy
			}
			work, policy := fresh()
			if ok, out := attack(t, &Backend{}, sandbox.Spec{Dir: work, Protect: []string{policy}}, tt.attack, filepath.Join(work, tt.target)); ok {
				t.Errorf("it worked: %s", out)
			}
			if data, err := os.ReadFile(policy); string(data) != "allow: []\n" {
				t.Errorf("the file is now %q, %v", data, err)
			}
			if tt.name == "remove its directory" {
				return // it is not empty
			}
			work, policy = fresh()
			if ok, out := attack(t, without("protect", "replaced"), sandbox.Spec{Dir: work, Protect: []string{policy}}, tt.attack, filepath.Join(work, tt.target)); !ok {
				t.Errorf("without the layer it was stopped all the same, so this test shows nothing: %s", out)
			}
		})
	}
	if _, err := new(Backend).Run(t.Context(), sandbox.Spec{Argv: []string{"true"}, Dir: "/", Protect: []string{"/no/such/file"}}); err == nil {
		t.Error("a file that can't be protected must be an error")
	}
}
