package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestListFiles: launch reads list files beside its policy, tells a rule's place
// in them, stops before anything runs where one is wrong, and the program cannot
// change them for the next run.
func TestListFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const allowed = "# ours\nok.example.com\nads.example.com\n"
	list := write("allowed.txt", allowed)
	write("ads.txt", "! list\n||ads.example.com^\n")
	write("policy.yaml", "allow_file: allowed.txt\ndeny_file: ads.txt\n")
	for args, want := range map[string][]string{
		"check policy.yaml": {"2 allow and 1 deny rules", "2 rules of the list allowed.txt (rules)", "1 rules of the list ads.txt (adblock)"},
		"explain --policy policy.yaml ok.example.com:443":       {"allowed", "ok.example.com", "allowed.txt:2:1"},
		"explain --policy policy.yaml x.ads.example.com:443":    {"denied", ".ads.example.com", "ads.txt:2:3"},
		"explain --policy policy.yaml below.ok.example.com:443": {"denied", "ok.example.com is that host alone"},
	} {
		out, _ := command(t, dir, strings.Fields(args)...)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: the answer lacks %q:\n%s", args, w, out)
			}
		}
	}
	attack := "echo evil.example >>allowed.txt; echo evil.example >ads.txt; rm -f allowed.txt; mv ads.txt gone; echo mine >other.txt && exit 7"
	if out, code := command(t, dir, "--policy", "policy.yaml", "--", "/bin/sh", "-c", attack); code != 7 {
		t.Errorf("the program ended with %d, want 7: %s", code, out)
	}
	if text, err := os.ReadFile(list); err != nil || string(text) != allowed {
		t.Errorf("the program changed a list of the policy: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ads.txt")); err != nil {
		t.Errorf("the program took a list of the policy away: %v", err)
	}
	ran := filepath.Join(dir, "ran")
	write("ads.txt", "||ads.example.com^\nads.example.com##.banner\n")
	if out, code := command(t, dir, "--policy", "policy.yaml", "--", "touch", ran); code != 125 || !strings.Contains(out, "ads.txt:2:1") {
		t.Errorf("a run with a bad list: exit code %d, want 125: %s", code, out)
	}
	if exists(ran) {
		t.Error("a run with a bad list ran")
	}
}
