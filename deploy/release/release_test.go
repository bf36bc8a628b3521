package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestPack makes equal archives of equal files, in whatever order they come.
func TestPack(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	one, err := pack([]entry{{"a", 0o644, []byte("x")}, {"b", 0o755, []byte("y")}}, at)
	if err != nil {
		t.Fatal(err)
	}
	two, err := pack([]entry{{"b", 0o755, []byte("y")}, {"a", 0o644, []byte("x")}}, at)
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("two archives differ (%v)", err)
	}
	three, err := pack([]entry{{"b", 0o755, []byte("z")}, {"a", 0o644, []byte("x")}}, at)
	if err != nil || bytes.Equal(one, three) {
		t.Errorf("archives of other files are equal (%v)", err)
	}
}

func TestVersion(t *testing.T) {
	for _, v := range []string{"", "1.2.3", "v1.2", "v1.2.3/x", "v1.2.3 -X y", "v1.2.3\n"} {
		if err := (&release{version: v, out: filepath.Join(t.TempDir(), "x")}).make(); err == nil || !strings.Contains(err.Error(), "--version") {
			t.Errorf("%q: %v", v, err)
		}
	}
}

// published is a directory as a release has it, with programs that say who they are.
func published(t *testing.T) (dir, archive string) {
	t.Helper()
	dir = t.TempDir()
	archive = filepath.Join(dir, "egressd_1.2.3_linux_"+runtime.GOARCH+".tar.gz")
	data, err := pack([]entry{
		{"launch", 0o755, []byte("#!/bin/sh\necho launch v1.2.3\n")}, {"egressd", 0o755, []byte("#!/bin/sh\n")}, {"README.md", 0o644, nil},
	}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	put(t, archive, data)
	put(t, dir+"/SHA256SUMS", fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(data), filepath.Base(archive)))
	return dir, archive
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func install(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"../../install.sh"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func skipElsewhere(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("there is no release for this machine")
	}
}

// TestInstall installs a release from a directory.
func TestInstall(t *testing.T) {
	skipElsewhere(t)
	dir, _ := published(t)
	to := filepath.Join(t.TempDir(), "bin")
	out, err := install(t, "--version", "v1.2.3", "--from", dir, "--to", to)
	if err != nil || !strings.Contains(out, "installed launch v1.2.3 in "+to) {
		t.Fatalf("%v: %s", err, out)
	}
	for _, program := range programs {
		if fi, err := os.Stat(filepath.Join(to, program)); err != nil || fi.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v %v", program, fi, err)
		}
	}
	if names, err := os.ReadDir(to); err != nil || len(names) != 2 {
		t.Errorf("%v %v", names, err)
	}
}

// TestInstallTampered is the attack: an archive, or its sum, is not the one of the
// release. What was installed before stays.
func TestInstallTampered(t *testing.T) {
	skipElsewhere(t)
	for name, tamper := range map[string]func(t *testing.T, dir, archive string){
		"another archive": func(t *testing.T, _, archive string) {
			data, err := pack([]entry{{"launch", 0o755, []byte("#!/bin/sh\necho evil\n")}, {"egressd", 0o755, nil}}, time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			put(t, archive, data)
		},
		"no sum": func(t *testing.T, dir, _ string) { put(t, dir+"/SHA256SUMS", nil) },
		"a short sum": func(t *testing.T, dir, archive string) {
			put(t, dir+"/SHA256SUMS", []byte("ab  "+filepath.Base(archive)+"\n"))
		},
		"two sums": func(t *testing.T, dir, archive string) {
			line := strings.Repeat("a", 64) + "  " + filepath.Base(archive) + "\n"
			put(t, dir+"/SHA256SUMS", []byte(line+line))
		},
		"no archive": func(t *testing.T, _, archive string) { _ = os.Remove(archive) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, archive := published(t)
			tamper(t, dir, archive)
			to := t.TempDir()
			put(t, to+"/launch", []byte("before"))
			out, err := install(t, "--version", "v1.2.3", "--from", dir, "--to", to)
			if err == nil || !strings.Contains(out, "install.sh: ") {
				t.Errorf("%v: %s", err, out)
			}
			if data, err := os.ReadFile(to + "/launch"); err != nil || string(data) != "before" {
				t.Errorf("launch is %q now (%v)", data, err)
			}
		})
	}
}

// TestInstallMisuse says what to type, and fetches nothing.
func TestInstallMisuse(t *testing.T) {
	for want, args := range map[string][]string{
		"write v1.2.3":     {"--version", "1.2.3"},
		"write v1.2.3 ":    nil,
		"needs a value":    {"--to"},
		"there is no --x":  {"--x", "y"},
		"only https://":    {"--version", "v1.2.3", "--from", "http://127.0.0.1:1"},
		"cannot be read":   {"--version", "v1.2.3", "--from", "/nowhere"},
		"--version 'v1.2.": {"--version", "v1.2.3/../../x"},
	} {
		out, err := install(t, args...)
		if err == nil || !strings.Contains(out, strings.TrimSpace(want)) {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}
