//go:build system

package clients

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// serverUser is who runs servers that refuse to run as root.
func serverUser(t *testing.T) person {
	t.Helper()
	list := people(t)
	return list[len(list)-1]
}

// startServer runs argv as who until the test ends, and returns once addr
// accepts connections.
func startServer(t *testing.T, who person, dir, addr string, argv ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 && who.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}
		cmd.SysProcAttr.AmbientCaps = []uintptr{10} // CAP_NET_BIND_SERVICE
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var log lockedBuffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is told to end below
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	giveUp := time.After(30 * time.Second)
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("%v ended: %s", argv, log.String())
		case <-giveUp:
			t.Fatalf("%v does not listen at %s: %v\n%s", argv, addr, err, log.String())
		case <-tick.C:
		}
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// findProgram looks along PATH, then at patterns where distributions keep
// servers out of it.
func findProgram(t *testing.T, name string, patterns ...string) string {
	t.Helper()
	for _, p := range patterns {
		if found, _ := filepath.Glob(filepath.Join(p, name)); len(found) > 0 { // the patterns are well-formed
			return found[len(found)-1]
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// must runs argv as who, outside the sandbox.
func must(t *testing.T, who person, dir string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8"}
	if os.Geteuid() == 0 && who.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// postgres starts a real PostgreSQL with TLS.
func postgres(t *testing.T) {
	t.Helper()
	initdb := findProgram(t, "initdb", "/usr/lib/postgresql/*/bin")
	server := findProgram(t, "postgres", "/usr/lib/postgresql/*/bin")
	who := serverUser(t)
	dir := who.home(t)
	data := filepath.Join(dir, "data")
	must(t, who, dir, initdb, "-D", data, "-U", "tester", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8")
	key := filepath.Join(dir, "server.key")
	copyFile(t, env.world.ca.keyFile, key)
	who.own(t, key)
	write(t, filepath.Join(data, "pg_hba.conf"), "host all tester 127.0.0.0/8 trust\n")
	startServer(t, who, dir, addresses[dbHost]+":5432", server, "-D", data, "-h", addresses[dbHost], "-p", "5432", "-k", dir,
		"-c", "ssl=on", "-c", "ssl_key_file="+key, "-c", "ssl_cert_file="+env.world.ca.leafFile, "-c", "fsync=off")
}

func redis(t *testing.T) {
	t.Helper()
	server := findProgram(t, "redis-server")
	who := serverUser(t)
	dir := who.home(t)
	startServer(t, who, dir, addresses[cacheHost]+":6379", server, "--bind", addresses[cacheHost], "--port", "6379", "--save", "", "--appendonly", "no", "--dir", dir)
}

// sshServer starts a real sshd that lets the user of this process in with a
// key, and reports that user's name and the files a client needs.
func sshServer(t *testing.T) (login, key, knownHosts string) {
	t.Helper()
	daemon := findProgram(t, "sshd", "/usr/sbin")
	keygen := findProgram(t, "ssh-keygen")
	me, err := user.Current()
	if err != nil {
		t.Skipf("no name for this user: %v", err)
	}
	self := people(t)[0]
	dir := self.home(t)
	if self.uid == 0 {
		makePrivilegeSeparation(t)
	}
	for _, name := range []string{"host", "user"} {
		must(t, self, dir, keygen, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name))
	}
	pub, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "known_hosts"), sshHost+" "+string(pub))
	write(t, filepath.Join(dir, "sshd_config"), "HostKey "+filepath.Join(dir, "host")+`
ListenAddress `+addresses[sshHost]+`:22
AuthorizedKeysFile `+filepath.Join(dir, "user.pub")+`
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
`)
	startServer(t, self, dir, addresses[sshHost]+":22", daemon, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
	return me.Username, filepath.Join(dir, "user"), filepath.Join(dir, "known_hosts")
}

// makePrivilegeSeparation makes the directory that sshd wants as root, and
// that only a running service has.
func makePrivilegeSeparation(t *testing.T) {
	t.Helper()
	const dir = "/run/sshd"
	err := os.Mkdir(dir, 0o755)
	switch {
	case os.IsExist(err):
	case err != nil:
		t.Skipf("sshd needs %s: %v", dir, err)
	default:
		t.Cleanup(func() { _ = os.Remove(dir) }) // another sshd may use it by now
	}
}
