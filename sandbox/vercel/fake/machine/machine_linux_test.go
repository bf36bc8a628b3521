package machine

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if Agent(os.Args) {
		return
	}
	os.Exit(m.Run())
}

func newDisk(t *testing.T) *Disk {
	t.Helper()
	base, err := os.MkdirTemp("", "machine-test")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	d, err := NewDisk(filepath.Join(base, "disk"), ImageUser)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func boot(t *testing.T, d *Disk) *Machine {
	t.Helper()
	m, err := Start(t.Context(), Config{Disk: d, Console: os.Stderr})
	if err != nil {
		t.Skipf("this machine can't run the tier: %v", err)
	}
	t.Cleanup(m.Stop)
	return m
}

func env() []string { return []string{"PATH=" + defaultPath, "HOME=" + Home} }

// sh runs a script and reports what it wrote and how it ended.
func sh(t *testing.T, m *Machine, script string) (stdout, stderr string, e Exit) {
	t.Helper()
	return finish(t, start1(t, m, Command{Argv: []string{"sh", "-c", script}, Dir: Home, Env: env()}))
}

func start1(t *testing.T, m *Machine, c Command) *Process {
	t.Helper()
	p, err := m.Exec(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll([]*os.File{p.Stdout, p.Stderr}) })
	return p
}

func finish(t *testing.T, p *Process) (stdout, stderr string, e Exit) {
	t.Helper()
	out := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(p.Stdout)
		out <- string(b)
	}()
	b, _ := io.ReadAll(p.Stderr)
	select {
	case e = <-p.Exited:
	case <-time.After(20 * time.Second):
		t.Fatal("the program does not end")
	}
	return <-out, string(b), e
}

func TestCommands(t *testing.T) {
	m := boot(t, newDisk(t))
	for _, tt := range []struct {
		name, script, out, err string
		code                   int
	}{
		{"both streams", "echo out; echo err >&2; exit 3", "out\n", "err\n", 3},
		{"where it is", "pwd; echo $HOME; ls -A", "/vercel\n/vercel\n", "", 0},
		{"who it is", "whoami", "ubuntu\n", "", 0},
		{"killed by a signal", "kill -9 $$", "", "", 137},
		{"its disk", "echo a >f; echo b >/tmp/f; mkdir /workspace/x; cat f /tmp/f", "a\nb\n", "", 0},
		{"what was left there", "cat f /tmp/f; ls /workspace", "a\nb\nx\n", "", 0},
		{"nothing of the host is written", "echo x 2>/dev/null >/usr/x || echo no", "no\n", "", 0},
		{"nobody's home", "ls -A /root /home", "/home:\n\n/root:\n", "", 0},
		{"no input", "cat", "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, e := sh(t, m, tt.script)
			if out != tt.out || errs != tt.err || e.Code != tt.code || e.Lost {
				t.Errorf("got %q, %q, %+v", out, errs, e)
			}
		})
	}
}

// Programs of one machine share its network and processes, and outlive who
// started them.
func TestOneMachine(t *testing.T) {
	m := boot(t, newDisk(t))
	first := start1(t, m, Command{Argv: []string{"sh", "-c", "sleep 60 & echo $! >pid; echo started"}, Dir: Home, Env: env()})
	if e := <-first.Exited; e.Code != 0 {
		t.Fatal(e)
	}
	if out, _, e := sh(t, m, "kill -0 $(cat pid) && echo alive; kill $(cat pid)"); out != "alive\n" || e.Code != 0 {
		t.Errorf("got %q, %+v", out, e)
	}
}

func TestRoot(t *testing.T) {
	m := boot(t, newDisk(t))
	p := start1(t, m, Command{Argv: []string{"sh", "-c", "id -u; whoami"}, Dir: "/", Env: env(), Root: true})
	if out, errs, _ := finish(t, p); out != "0\nroot\n" {
		t.Errorf("got %q, %q", out, errs)
	}
}

func TestSignals(t *testing.T) {
	m := boot(t, newDisk(t))
	for _, tt := range []struct {
		name, script string
		sig          syscall.Signal
		group        bool
		want         int
	}{
		{"killed", "echo ready; exec sleep 60", syscall.SIGKILL, false, 137},
		{"ended", "echo ready; exec sleep 60", syscall.SIGTERM, false, 143},
		{"its own word", "trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done", syscall.SIGTERM, false, 42},
		{"with what it started", "sleep 60 & echo ready; wait", syscall.SIGKILL, true, 137},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := start1(t, m, Command{Argv: []string{"sh", "-c", tt.script}, Dir: "/", Env: env()})
			if _, err := io.ReadFull(p.Stdout, make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
			if err := p.Signal(t.Context(), tt.sig, tt.group); err != nil {
				t.Fatal(err)
			}
			if _, _, e := finish(t, p); e.Code != tt.want {
				t.Errorf("got %+v", e)
			}
			if err := p.Signal(t.Context(), tt.sig, tt.group); err != nil {
				t.Errorf("after its end: %v", err)
			}
		})
	}
}

func kindOf(err error) Kind {
	if e := asError(err); e != nil {
		return e.Kind
	}
	return ""
}

func TestErrors(t *testing.T) {
	m := boot(t, newDisk(t))
	sh(t, m, "touch file; mkfifo pipe")
	ctx := t.Context()
	exec := func(dir string, argv ...string) error {
		_, err := m.Exec(ctx, Command{Argv: argv, Dir: dir, Env: env()})
		return err
	}
	open := func(path string) error {
		f, err := m.Open(ctx, Home, path)
		if err == nil {
			_ = f.Close()
		}
		return err
	}
	for _, tt := range []struct {
		name string
		err  error
		want Kind
	}{
		{"no such program", exec("/", "no-such-program"), NoProgram},
		{"no such path", exec("/", "/no/such/program"), NoProgram},
		{"no program", exec(Home, "./file"), NotExecutable},
		{"no such directory", exec("/no-such", "true"), BadDirectory},
		{"no directory", exec(Home+"/file", "true"), BadDirectory},
		{"no such file", open("no-such"), NotFound},
		{"a directory", open("."), BadFile},
		{"a pipe", open("pipe"), BadFile},
		{"a file", open("file"), ""},
		{"mkdir", m.Mkdir(ctx, Home, "dir", false), ""},
		{"mkdir again", m.Mkdir(ctx, Home, "dir", false), BadFile},
		{"mkdir without parent", m.Mkdir(ctx, Home, "a/b", false), BadFile},
		{"mkdir with parents", m.Mkdir(ctx, Home, "a/b", true), ""},
		{"mkdir where one is", m.Mkdir(ctx, Home, "a/b", true), ""},
		{"no archive", m.Extract(ctx, Home, strings.NewReader("no archive")), BadFile},
	} {
		if got := kindOf(tt.err); got != tt.want {
			t.Errorf("%s: got %v", tt.name, tt.err)
		}
	}
}

func TestExtract(t *testing.T) {
	m := boot(t, newDisk(t))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range []tar.Header{
		{Name: "vercel/a/hello.txt", Mode: 0o644, Size: 5, Typeflag: tar.TypeReg},
		{Name: "vercel/run.sh", Mode: 0o755, Size: 5, Typeflag: tar.TypeReg},
		{Name: "../../vercel/up", Mode: 0o600, Size: 5, Typeflag: tar.TypeReg},
		{Name: "vercel/link", Linkname: "a", Typeflag: tar.TypeSymlink},
		{Name: "vercel/dir", Mode: 0o700, Typeflag: tar.TypeDir},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = w.Write([]byte("hello"))
		}
	}
	_, _ = w.Close(), z.Close()
	for range 2 { // the second time over what is there
		if err := m.Extract(t.Context(), "/", bytes.NewReader(b.Bytes())); err != nil {
			t.Fatal(err)
		}
	}
	out, _, _ := sh(t, m, "cat link/hello.txt; stat -c %a-%U a a/hello.txt run.sh dir up")
	want := "hello755-ubuntu\n644-ubuntu\n755-ubuntu\n700-ubuntu\n600-ubuntu\n"
	if out != want {
		t.Errorf("got %q", out)
	}
}

// Directories that are hidden are there, and empty.
func TestHide(t *testing.T) {
	m, err := Start(t.Context(), Config{Disk: newDisk(t), Hide: []string{"/usr/share", "/no/such", "/home/x", "/", "relative"}})
	if err != nil {
		t.Skipf("this machine can't run the tier: %v", err)
	}
	t.Cleanup(m.Stop)
	if out, errs, _ := sh(t, m, "ls -A /usr/share; test -x /usr/bin/env && echo ok"); out != "ok\n" || errs != "" {
		t.Errorf("got %q, %q", out, errs)
	}
}

func TestDial(t *testing.T) {
	m := boot(t, newDisk(t))
	if _, err := m.Dial(t.Context(), 4321); kindOf(err) != NoServer {
		t.Errorf("nobody listens: %v", err)
	}
	if _, _, e := sh(t, m, "command -v python3"); e.Code != 0 {
		t.Skip("no python3 to serve with")
	}
	p := start1(t, m, Command{Argv: []string{"python3", "-c", `
import socket
s = socket.socket(); s.bind(("127.0.0.1", 4321)); s.listen(); print("ready", flush=True)
c = s.accept()[0]; c.sendall(b"got " + c.recv(100)); c.close()`}, Dir: "/", Env: env()})
	if _, err := io.ReadFull(p.Stdout, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	c, err := m.Dial(t.Context(), 4321)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("this"))
	if got, err := io.ReadAll(c); string(got) != "got this" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Stop ends what runs inside, and says so to who waits.
func TestStop(t *testing.T) {
	m := boot(t, newDisk(t))
	p := start1(t, m, Command{Argv: []string{"sleep", "60"}, Dir: "/", Env: env()})
	m.Stop()
	if e := <-p.Exited; !e.Lost || e.Code != 137 {
		t.Errorf("got %+v", e)
	}
	if _, err := m.Exec(context.Background(), Command{Argv: []string{"true"}, Dir: "/", Env: env()}); kindOf(err) != Stopped {
		t.Errorf("after the stop: %v", err)
	}
	m.Stop()
}

func TestDiskCopy(t *testing.T) {
	d := newDisk(t)
	m := boot(t, d)
	_, errs, _ := sh(t, m, "mkdir -p a/b; echo hi >a/b/f; chmod 750 a; ln -s b a/l; echo x >closed; chmod 000 closed; mkfifo p; chmod 755 .; touch -d @1000000 a/b/f")
	m.Stop()
	if errs != "" {
		t.Fatal(errs)
	}
	c, err := d.Copy(filepath.Join(filepath.Dir(d.dir), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Bytes() < 5 {
		t.Error(c.Bytes())
	}
	m = boot(t, c)
	out, _, _ := sh(t, m, "cat a/l/f; stat -c %a a closed; stat -c %Y a/b/f; ls -A")
	if out != "hi\n750\n0\n1000000\na\nclosed\n" {
		t.Errorf("got %q", out)
	}
	m.Stop()
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
}
