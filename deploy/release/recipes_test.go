package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestRecipes: each has the version, both archives and both sums, and nothing that was not filled in.
func TestRecipes(t *testing.T) {
	sums := map[string][32]byte{"amd64": sha256.Sum256([]byte("a")), "arm64": sha256.Sum256([]byte("b"))}
	files, err := recipes("v1.2.3-rc.1", sums)
	if err != nil || len(files) != 3 {
		t.Fatalf("%d recipes, %v", len(files), err)
	}
	for _, f := range files {
		text := string(f.data)
		want := []string{"egressd_1.2.3-rc.1_linux_amd64.tar.gz", "egressd_1.2.3-rc.1_linux_arm64.tar.gz", "/releases/download/v1.2.3-rc.1"}
		for _, sum := range sums {
			if f.name == "flake.nix" {
				want = append(want, "sha256-"+base64.StdEncoding.EncodeToString(sum[:]))
			} else {
				want = append(want, hex.EncodeToString(sum[:]))
			}
		}
		for _, w := range want {
			if strings.Count(text, w) != 1 && !strings.HasPrefix(w, "/") || !strings.Contains(text, w) {
				t.Errorf("%s: %q is not there once:\n%s", f.name, w, text)
			}
		}
		if strings.Contains(text, "{{") || strings.Contains(text, "<no value>") {
			t.Errorf("%s is not filled:\n%s", f.name, text)
		}
		if f.name == "PKGBUILD" {
			cmd := exec.CommandContext(t.Context(), "bash", "-n")
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(text, "pkgver=1.2.3_rc.1\n") {
				t.Errorf("PKGBUILD: %v %s", err, out)
			}
		}
	}
	delete(sums, "arm64")
	if _, err := recipes("v1.2.3", sums); err == nil {
		t.Error("recipes of one architecture were made")
	}
}

// TestRecipesShip: what recipes and packages install is in an archive.
func TestRecipesShip(t *testing.T) {
	shippedNames := map[string]bool{}
	for _, name := range shipped {
		shippedNames[strings.TrimPrefix(name, "deploy/")] = true
	}
	for _, program := range programs {
		for _, name := range []string{"%", "man/%.1", "completions/%.bash", "completions/_%", "completions/%.fish"} {
			shippedNames[strings.ReplaceAll(name, "%", program)] = true
		}
	}
	for _, p := range places {
		if !shippedNames[p.from] {
			t.Errorf("no archive has %s", p.from)
		}
	}
	for format, has := range map[string]bool{"deb": true, "rpm": false, "apk": false} {
		text := manifest("1.2.3", "amd64", format, "/d", time.Unix(0, 0))
		if strings.Contains(text, "apparmor") != has || strings.Contains(text, "postinstall") != has {
			t.Errorf("%s:\n%s", format, text)
		}
	}
	for _, script := range []string{loadProfile, unloadProfile} {
		cmd := exec.CommandContext(t.Context(), "sh", "-n")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, script)
		}
	}
}

// TestMaterials reads this test's own binary: every module that it was linked with is named, with its sum.
func TestMaterials(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	out, err := materials("launch", "v1.2.3", time.Unix(0, 0).UTC(), binary)
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(out, &b); err != nil || b.Format != "CycloneDX" || b.Metadata.Component.Version != "v1.2.3" || b.Components[0].Name != "std" || b.Components[0].Version == "" {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := materials("launch", "v1.2.3", time.Time{}, []byte("no program")); err == nil {
		t.Error("a list of what no program holds")
	}
}

// TestSumUp names every file, in order.
func TestSumUp(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/b", []byte("y"))
	put(t, dir+"/a", []byte("x"))
	if err := sumUp(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(dir + "/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "-c", "--strict", "SHA256SUMS")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "a: OK\nb: OK\n" {
		t.Errorf("%v: %s\n%s", err, out, got)
	}
}
