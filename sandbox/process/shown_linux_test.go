package process

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/sandbox"
)

// place makes a directory with one file in it, and reports the directory.
func place(t *testing.T, name, text string) string {
	t.Helper()
	dir := tempDir(t, "/var/tmp")
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBinds(t *testing.T) {
	disk, other, file := place(t, "a", "disk"), place(t, "a", "disk"), filepath.Join(place(t, "f", "file"), "f")
	for _, tt := range []struct {
		name   string
		binds  []Bind
		script string
		want   string
	}{
		{"a new place at the root", []Bind{{Source: disk, Target: "/no-such-place"}}, "cat /no-such-place/a; ls /no-such-place", "diska"},
		{"several levels down", []Bind{{Source: disk, Target: "/no-such-place/b/c"}}, "cat /no-such-place/b/c/a", "disk"},
		{"two new places", []Bind{{Source: disk, Target: "/no-such-place"}, {Source: file, Target: "/no-such-file"}}, "cat /no-such-place/a /no-such-file", "diskfile"},
		{"one in the other", []Bind{{Source: file, Target: "/no-such-place/in/f"}, {Source: other, Target: "/no-such-place"}}, "cat /no-such-place/a /no-such-place/in/f", "diskfile"},
		{"a new place in a directory of the host", []Bind{{Source: disk, Target: "/usr/no-such-place"}}, "cat /usr/no-such-place/a; test -x /usr/bin/env && echo ok", "diskok"},
		{"in the place of a private root", []Bind{{Source: disk, Target: "/tmp"}}, "ls /tmp; cat /tmp/a", "adisk"},
		{"in the place of a directory", []Bind{{Source: disk, Target: "/home"}}, "ls /home", "a"},
		{"in the place of a file", []Bind{{Source: file, Target: "/etc/passwd"}}, "cat /etc/passwd", "file"},
		{"read-only", []Bind{{Source: disk, Target: "/no-such-place", ReadOnly: true}}, "echo x 2>/dev/null >/no-such-place/a || cat /no-such-place/a", "disk"},
		{"what is there besides", []Bind{{Source: disk, Target: "/no-such-place"}}, "cd / && ls -d bin etc proc dev tmp usr && test -d /proc/self && echo x >/dev/null && echo ok", "bindevetcproctmpusrok"},
		{"the new root cannot be written", []Bind{{Source: disk, Target: "/no-such-place"}}, "mkdir /other 2>/dev/null || echo no", "no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := sh(t, &Backend{Binds: tt.binds}, tt.script)
			if got := strings.ReplaceAll(res.out, "\n", ""); res.err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, res.err, tt.want)
			}
			if _, err := os.Lstat("/no-such-place"); err == nil {
				t.Error("a directory was made on the host")
			}
		})
	}
}

// What is written to a bind is there outside, also as the working directory.
func TestBindIsWritten(t *testing.T) {
	disk := place(t, "a", "")
	b := &Backend{Binds: []Bind{{Source: disk, Target: "/no-such-place"}}}
	res := run(t, b, sandbox.Spec{Dir: "/no-such-place", Argv: []string{"/bin/sh", "-c", "pwd; mkdir sub && echo hello >sub/b"}})
	if data, err := os.ReadFile(filepath.Join(disk, "sub/b")); res.out != "/no-such-place\n" || string(data) != "hello\n" {
		t.Errorf("printed %q, wrote %q, %v, %v", res.out, data, err, res.err)
	}
}

// Below a target there is nothing of the host, whatever argv names.
func TestBindHidesWhatIsNamed(t *testing.T) {
	disk, named := place(t, "a", ""), tempDir(t, "/tmp")
	if err := os.WriteFile(filepath.Join(named, "b"), []byte("named"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Spec{Argv: []string{"/bin/cat", filepath.Join(named, "b")}}
	if res := run(t, &Backend{}, spec); res.out != "named" {
		t.Fatalf("without the bind it is not brought back: %q, %v", res.out, res.err)
	}
	if res := run(t, &Backend{Binds: []Bind{{Source: disk, Target: "/tmp"}}}, spec); res.ExitCode == 0 {
		t.Errorf("it was brought back: %q", res.out)
	}
	if entries, err := os.ReadDir(disk); len(entries) != 1 {
		t.Errorf("the run left something in the disk: %v, %v", entries, err)
	}
}

// A socket in what is shown is masked as one elsewhere is.
func TestBindMasksSockets(t *testing.T) {
	disk := tempDir(t, "/var/tmp")
	ln, err := net.Listen("unix", filepath.Join(disk, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	res := sh(t, &Backend{Binds: []Bind{{Source: disk, Target: "/no-such-place"}}}, "test -S /no-such-place/s && echo there")
	if res.err != nil || res.out != "" {
		t.Errorf("got %q, %v", res.out, res.err)
	}
	b := without("sockets")
	b.Binds = []Bind{{Source: disk, Target: "/no-such-place"}}
	if res := sh(t, b, "test -S /no-such-place/s && echo there"); res.out != "there\n" {
		t.Errorf("without the layer it was not there either: %q, %v", res.out, res.err)
	}
}

func TestReadOnly(t *testing.T) {
	disk, host := tempDir(t, "/var/tmp"), tempDir(t, "/srv")
	script := "echo x >/no-such-place/b && echo x >/tmp/b && echo x >/dev/shm/b && echo x >/run/b && echo private; " +
		"if echo x 2>/dev/null >" + host + "/b; then echo host; fi"
	b := &Backend{Binds: []Bind{{Source: disk, Target: "/no-such-place"}}}
	if res := sh(t, b, script); res.out != "private\n" {
		t.Errorf("got %q, %v", res.out, res.err)
	}
	bare := without("read-only")
	bare.Binds = b.Binds
	if res := sh(t, bare, script); res.out != "private\nhost\n" {
		t.Errorf("without the layer: %q, %v", res.out, res.err)
	}
	work := tempDir(t, "/var/tmp")
	if res := run(t, b, sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", "echo x >b && echo yes"}}); res.out != "yes\n" {
		t.Errorf("the working directory could not be written: %q, %v", res.out, res.err)
	}
	b.ReadOnly = true
	if res := run(t, b, sandbox.Spec{Dir: work, Argv: []string{"/bin/sh", "-c", "echo x 2>/dev/null >b || echo no"}}); res.out != "no\n" {
		t.Errorf("the working directory could be written: %q, %v", res.out, res.err)
	}
}

func TestBindsRefused(t *testing.T) {
	disk := place(t, "a", "")
	pipe := filepath.Join(disk, "s")
	ln, err := net.Listen("unix", pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	many := make([]Bind, maxShown+1)
	for name, binds := range map[string][]Bind{
		"must be an absolute path": {{Source: disk, Target: "here"}},
		"without detours":          {{Source: disk, Target: "/a/../b"}},
		"not /":                    {{Source: disk, Target: "/"}},
		"nothing can be shown":     {{Source: disk, Target: "/proc/self"}},
		"in /dev":                  {{Source: disk, Target: "/dev/shm"}},
		"no such file":             {{Source: disk + "/b", Target: "/b"}},
		"neither a directory":      {{Source: pipe, Target: "/b"}},
		"given twice":              {{Source: disk, Target: "/b"}, {Source: disk, Target: "/b"}},
		"of at most":               many,
	} {
		_, err := planShown(binds)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
