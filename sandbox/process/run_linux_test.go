package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/event"
	"egressd/sandbox"
)

func TestExitCodes(t *testing.T) {
	dir := tempDir(t, "/tmp")
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("echo hi\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("echo \"script $1\"; exit 9\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		argv []string
		code int
		out  string
	}{
		{"success", []string{"true"}, 0, ""},
		{"its own", []string{"/bin/sh", "-c", "exit 42"}, 42, ""},
		{"a signal", []string{"/bin/sh", "-c", "kill -TERM $$"}, 128 + 15, ""},
		{"a kill", []string{"/bin/sh", "-c", "kill -KILL $$"}, 128 + 9, ""},
		{"not found", []string{"no-such-program"}, 127, "launch: no-such-program: command not found\n"},
		{"no such path", []string{"/no/such/program"}, 127, "no such file or directory"},
		{"a directory", []string{"/usr"}, 126, "is a directory"},
		{"not executable", []string{plain}, 126, "permission denied"},
		{"script without #!", []string{script, "arg"}, 9, "script arg\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := run(t, &Backend{}, sandbox.Spec{Argv: tt.argv})
			if res.err != nil || res.ExitCode != tt.code || !strings.Contains(res.out, tt.out) {
				t.Errorf("exit %d, %v, %q; want %d, %q", res.ExitCode, res.err, res.out, tt.code, tt.out)
			}
		})
	}
}

func TestScript(t *testing.T) {
	res := run(t, &Backend{}, sandbox.Spec{Script: `echo "${BASH_VERSION:+bash}"; exit 4`, Shell: "bash"})
	if res.ExitCode != 4 || res.out != "bash\n" {
		t.Errorf("exit %d, %v, %q", res.ExitCode, res.err, res.out)
	}
	for _, spec := range []sandbox.Spec{{}, {Script: "x", Argv: []string{"y"}}, {Script: "x", Shell: "fish"}, {Argv: []string{""}}} {
		var ce *sandbox.CapabilityError
		if err := (&Backend{}).Supports(spec); !errors.As(err, &ce) {
			t.Errorf("Supports(%+v) = %v, want a CapabilityError", spec, err)
		}
	}
}

func TestTimeout(t *testing.T) {
	marker := fmt.Sprintf("85%d", os.Getpid())
	start := time.Now()
	res := run(t, &Backend{}, sandbox.Spec{
		Argv:    []string{"/bin/sh", "-c", `trap "" TERM; (trap "" TERM; setsid sleep ` + marker + ` &); while :; do sleep 1; done`},
		Timeout: 200 * time.Millisecond, Grace: 200 * time.Millisecond,
	})
	if res.ExitCode != 124 || !res.TimedOut || res.err != nil {
		t.Errorf("exit %d, timed out %v, %v", res.ExitCode, res.TimedOut, res.err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
	if findProcess(marker) == nil {
		t.Error("a process of the run is still there")
	}
	// A harness that ends in time on SIGTERM still exits 124.
	res = run(t, &Backend{}, sandbox.Spec{
		Argv:    []string{"/bin/sh", "-c", `trap "echo cleaned; exit 3" TERM; sleep 20 & wait`},
		Timeout: 200 * time.Millisecond, Grace: 10 * time.Second,
	})
	if res.ExitCode != 124 || res.out != "cleaned\n" {
		t.Errorf("exit %d, %q", res.ExitCode, res.out)
	}
}

func TestCancel(t *testing.T) {
	needNamespaces(t)
	r, w, _ := os.Pipe()
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		r.Read(make([]byte, 2))
		cancel()
	}()
	res, err := (&Backend{}).Run(ctx, sandbox.Spec{Argv: []string{"/bin/sh", "-c", "trap 'exit 5' TERM; echo up; sleep 30 & wait"}, Dir: "/", Env: []string{"PATH=/bin:/usr/bin"}, Stdout: w})
	w.Close()
	if err != nil || res.ExitCode != 5 {
		t.Errorf("exit %d, %v", res.ExitCode, err)
	}
}

// TestSignals sends the launcher what it must forward.
func TestSignals(t *testing.T) {
	needNamespaces(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			script := fmt.Sprintf(`trap "echo got; exit 6" %d; echo up; while :; do sleep 0.05; done`, int(sig))
			cmd := exec.CommandContext(t.Context(), self(t), "launch", "/bin/sh", "-c", script)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			lines.Scan()
			cmd.Wait()
			if cmd.ProcessState.ExitCode() != 6 || lines.Text() != "got" {
				t.Errorf("exit %d, %q", cmd.ProcessState.ExitCode(), lines.Text())
			}
		})
	}
}

// TestPrivateTmp shows what is brought back into /tmp and what is not.
func TestPrivateTmp(t *testing.T) {
	base := tempDir(t, "/tmp")
	write := func(name, text string) string {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("work/a", "in work")
	write("secret", "secret")
	named := write("named", "named")
	viaEnv := write("ca.pem", "ca")
	tool := write("tools/tool", "#!/bin/sh\n. \"$(dirname \"$0\")/part\"\n")
	write("tools/part", "echo parts together\n")
	if err := os.Symlink(named, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(base, "work")
	env := []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "MY_CA=" + viaEnv}
	script := func(b *Backend, text string, args ...string) result {
		return run(t, b, sandbox.Spec{Dir: work, Env: env, Argv: append([]string{"/bin/sh", "-c", text, "sh"}, args...)})
	}
	for _, tt := range []struct{ name, script, arg, want string }{
		{"working directory", "cat a; echo new >b", "", "in work"},
		{"not named", "cat ../secret 2>&1 || true", "", "cat: ../secret: No such file or directory\n"},
		{"named", "cat $1", named, "named"},
		{"named by a relative path", "cat $1", "../named", "named"},
		{"named behind =", "cat ${1#*=}", "--file=" + named, "named"},
		{"named by a link", "cat $1", filepath.Join(base, "link"), "named"},
		{"named by a variable", "cat $MY_CA", "", "ca"},
		{"named is read-only", "echo x >$1 || true", named, "sh: 1: cannot create " + named + ": Read-only file system\n"},
		{"program with what lies beside it", "$1", tool, "parts together\n"},
		{"writable", "echo x >/tmp/process-test-x && cat /tmp/process-test-x", "", "x\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := []string{tt.arg}
			if tt.name == "program with what lies beside it" {
				res := run(t, &Backend{}, sandbox.Spec{Dir: work, Env: env, Argv: []string{tt.arg}})
				if res.out != tt.want {
					t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
				}
				return
			}
			if res := script(&Backend{}, tt.script, args...); res.out != tt.want {
				t.Errorf("%q, exit %d, %v; want %q", res.out, res.ExitCode, res.err, tt.want)
			}
		})
	}
	if data, _ := os.ReadFile(filepath.Join(work, "b")); string(data) != "new\n" {
		t.Errorf("what the harness wrote in its working directory: %q", data)
	}
	if _, err := os.Stat("/tmp/process-test-x"); err == nil {
		t.Error("a file of the private /tmp is on the host")
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
			b := &Backend{Protect: []string{policy}}
			if ok, out := attack(t, b, sandbox.Spec{Dir: work}, tt.attack, filepath.Join(work, tt.target)); ok {
				t.Errorf("it worked: %s", out)
			}
			if data, err := os.ReadFile(policy); string(data) != "allow: []\n" {
				t.Errorf("the file is now %q, %v", data, err)
			}
			if tt.name == "remove its directory" {
				return // it is not empty
			}
			work, policy = fresh()
			b = without("protect")
			b.Protect = []string{policy}
			if ok, out := attack(t, b, sandbox.Spec{Dir: work}, tt.attack, filepath.Join(work, tt.target)); !ok {
				t.Errorf("without the wall it was stopped all the same, so this test shows nothing: %s", out)
			}
		})
	}
	if _, err := (&Backend{Protect: []string{"/no/such/file"}}).Run(t.Context(), sandbox.Spec{Argv: []string{"true"}, Dir: "/"}); err == nil {
		t.Error("a file that can't be protected must be an error")
	}
}

// echoServer answers each line with "echo: " and the line.
func echoServer(t *testing.T) uint16 {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				data, _ := io.ReadAll(c)
				fmt.Fprintf(c, "echo: %s", data)
			}()
		}
	}()
	return uint16(ln.Addr().(*net.TCPAddr).Port)
}

const sendLine = `import socket,sys
s=socket.create_connection((sys.argv[1],int(sys.argv[2])),5)
s.sendall(b"hello"); s.shutdown(socket.SHUT_WR)
print(s.makefile().read())`

func needPython(t *testing.T) string {
	t.Helper()
	for _, p := range []string{"/usr/bin/python3", "/usr/local/bin/python3"} {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	t.Skip("no python3 in the usual place")
	return ""
}

// TestHostPort reaches one port of the host's loopback, and no other.
func TestHostPort(t *testing.T) {
	python := needPython(t)
	port := echoServer(t)
	other := echoServer(t)
	rec := new(recorder)
	b := &Backend{
		Events: rec, HostPorts: []HostPort{{Port: port, Localhost: true}},
		Policy: compile(t, []string{fmt.Sprintf("raw:host.internal:%d", port)}, []string{"host.internal=127.0.0.1"}),
	}
	for _, host := range []string{"host.internal", "localhost", "127.0.0.1"} {
		res := run(t, b, sandbox.Spec{Argv: []string{python, "-c", sendLine, host, strconv.Itoa(int(port))}})
		if res.out != "echo: hello\n" {
			t.Errorf("%s: %q, exit %d, %v", host, res.out, res.ExitCode, res.err)
		}
		if res := run(t, b, sandbox.Spec{Argv: []string{python, "-c", sendLine, host, strconv.Itoa(int(other))}}); strings.Contains(res.out, "echo: hello") {
			t.Errorf("%s: the other port answered: %q", host, res.out)
		}
	}
	if !rec.find(func(e event.Event) bool {
		return e.Host == "host.internal" && e.Decision == event.Allowed && e.Port == port
	}) {
		t.Errorf("no event: %+v", rec.events)
	}
}

// freePort is a port of the loopback that nobody listens on just now.
func freePort(t *testing.T) uint16 {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return uint16(ln.Addr().(*net.TCPAddr).Port)
}

// TestPublish reaches a server inside from the host.
func TestPublish(t *testing.T) {
	python := needPython(t)
	port := freePort(t)
	b := &Backend{Publish: []Publish{{Port: port, Inside: 8080}}}
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			var d net.Dialer
			if c, err := d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				c.Write([]byte("hello"))
				c.(*net.TCPConn).CloseWrite()
				if data, _ := io.ReadAll(c); string(data) == "inside: hello" {
					c.Close()
					return
				}
				c.Close()
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C: // the server inside is not up yet
			}
		}
	}()
	server := `import socket
l=socket.create_server(("127.0.0.1",8080)); l.settimeout(8)
while True:
    c,_=l.accept(); d=c.makefile().read()
    if d:
        c.sendall(b"inside: "+d.encode()); c.close(); print("served", d); break`
	res := run(t, b, sandbox.Spec{Argv: []string{python, "-c", server}})
	if res.out != "served hello\n" {
		t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	_, err := (&Backend{Publish: []Publish{{Host: netip.MustParseAddr("0.0.0.0"), Port: port}}}).Run(t.Context(), sandbox.Spec{Argv: []string{"true"}, Dir: "/"})
	if err == nil {
		t.Error("publishing beyond the loopback must be an error")
	}
}

// TestThroughTheGate sends one request by each way in.
func TestThroughTheGate(t *testing.T) {
	python := needPython(t)
	port := echoServer(t)
	rec := new(recorder)
	b := &Backend{Events: rec, Policy: compile(t, []string{fmt.Sprintf("raw:service.example.com:%d", port)}, []string{"service.example.com=127.0.0.1"})}
	res := run(t, b, sandbox.Spec{Argv: []string{python, "-c", sendLine, "service.example.com", strconv.Itoa(int(port))}})
	if res.out != "echo: hello\n" {
		t.Errorf("captured: %q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	res = run(t, b, sandbox.Spec{Argv: []string{python, "-c", sendLine, "denied.example.com", strconv.Itoa(int(port))}})
	if res.ExitCode == 0 {
		t.Errorf("a denied name: %q", res.out)
	}
	if !rec.find(func(e event.Event) bool {
		return e.Type == event.DNSQuery && e.Decision == event.Blocked && e.Host == "denied.example.com"
	}) {
		t.Errorf("no event for the denied name: %+v", rec.events)
	}
}

// TestNothingStays checks that runs leave no descriptor and no goroutine.
func TestNothingStays(t *testing.T) {
	needNamespaces(t)
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	sh(t, &Backend{}, "exit 0")
	before := count()
	for range 5 {
		sh(t, &Backend{}, "exit 0")
		run(t, &Backend{}, sandbox.Spec{Argv: []string{"no-such-program"}})
		(&Backend{CaptureMode: "no such mode"}).Run(t.Context(), sandbox.Spec{Argv: []string{"true"}, Dir: "/"})
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestSetUpFails(t *testing.T) {
	needNamespaces(t)
	marker := fmt.Sprintf("84%d", os.Getpid())
	res, err := (&Backend{CaptureMode: "no such mode"}).Run(t.Context(), sandbox.Spec{Argv: []string{"sleep", marker}, Dir: "/"})
	if err == nil || res.ExitCode != 125 {
		t.Errorf("exit %d, %v", res.ExitCode, err)
	}
	if findProcess(marker) == nil {
		t.Error("the harness ran without its walls")
	}
}
