//go:build unix

package ledger

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"egressd/internal/run/receipt/format"
)

// The default key is made once, for this user alone; launches that start together
// get the same.
func TestDefaultKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := make([]string, 8)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			key, _, err := w.keys.Open(t.Context(), "")
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = format.KeyID(key.PublicPEM())
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("keys %v", ids)
		}
	}
	info, err := os.Stat(w.keys.Default)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	public, err := os.ReadFile(w.keys.Default + ".pub")
	must(t, err)
	if format.KeyID(string(public)) != ids[0] {
		t.Error("the public half is another's")
	}
	entries, err := os.ReadDir(filepath.Dir(w.keys.Default))
	must(t, err)
	if len(entries) != 2 {
		t.Errorf("left: %v", entries)
	}
}

func TestKeyFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, _, err := w.keys.Open(t.Context(), "")
	must(t, err)
	good, err := os.ReadFile(w.keys.Default)
	must(t, err)
	dir := t.TempDir()
	for _, c := range []struct {
		name    string
		content []byte
		mode    os.FileMode
		want    string // "": it is taken
	}{
		{"good", good, 0o600, ""},
		{"readonly", good, 0o400, ""},
		{"group", good, 0o640, "others may read it: chmod 600"},
		{"world", good, 0o604, "others may read it: chmod 600"},
		{"junk", []byte("junk"), 0o600, "openssl genpkey"},
		{"empty", nil, 0o600, "openssl genpkey"},
		{"public", []byte("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"), 0o600, "openssl genpkey"},
	} {
		name := filepath.Join(dir, c.name)
		must(t, os.WriteFile(name, c.content, c.mode))
		must(t, os.Chmod(name, c.mode))
		_, again, err := w.keys.Open(t.Context(), name)
		switch {
		case c.want == "" && (err != nil || again != name):
			t.Errorf("%s: %v %s", c.name, err, again)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	for spec, want := range map[string]string{
		dir: "no regular file", filepath.Join(dir, "none"): "no such file", "command:": "names no program", "ssh-agent:x": "SSH_AUTH_SOCK",
	} {
		if _, _, err := w.keys.Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", spec, err, want)
		}
	}
}

// A command that signs, one that lies, and one that fails.
func TestCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	script := func(name, public, sign string) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte("case $1 in public) "+public+";; sign) "+sign+";; esac\n"), 0o600))
		return "command:sh " + file
	}
	key, _, err := w.keys.Open(t.Context(), "")
	must(t, err)
	pem := filepath.Join(dir, "pub.pem")
	must(t, os.WriteFile(pem, []byte(key.PublicPEM()), 0o600))
	w.keys.Environ = []string{"PATH=" + os.Getenv("PATH")}
	for _, c := range []struct{ name, public, sign, open, want string }{
		{"no base64", "cat " + pem, "echo '!'", "", "this is not base64"},
		{"lies", "cat " + pem, "echo AAAA", "", "does not verify"},
		{"fails", "cat " + pem, "echo locked >&2; exit 3", "", "exit status 3 locked"},
		{"no key", "echo nothing", "", "no public key", ""},
		{"no public", "exit 1", "", "exit status 1", ""},
	} {
		k, _, err := w.keys.Open(t.Context(), script(strings.ReplaceAll(c.name, " ", "-"), c.public, c.sign))
		if c.open != "" {
			if err == nil || !strings.Contains(err.Error(), c.open) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.open)
			}
			continue
		}
		must(t, err)
		if _, err := k.Sign(t.Context(), []byte("x")); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// A run whose key an ssh agent holds.
func TestAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	ring := agent.NewKeyring()
	must(t, ring.Add(agent.AddedKey{PrivateKey: private, Comment: "receipts"}))
	public, err := ssh.NewPublicKey(private.Public())
	must(t, err)
	short, err := os.MkdirTemp("", "agent") // a socket's path is short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	w.keys.Agent = filepath.Join(short, "s")
	ln, err := net.Listen("unix", w.keys.Agent)
	must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = agent.ServeAgent(ring, c) // until the client has closed
			_ = c.Close()
		}
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = ln.Close() })
	_, weak, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	must(t, ring.Add(agent.AddedKey{PrivateKey: weak, Comment: "another"}))
	if _, _, err := w.keys.Open(t.Context(), "ssh-agent:SHA256:none"); err == nil || !strings.Contains(err.Error(), ssh.FingerprintSHA256(public)) {
		t.Errorf("an unknown key: %v", err)
	}
	for _, spec := range []string{"ssh-agent:" + ssh.FingerprintSHA256(public), "ssh-agent:receipts"} {
		w.spec = spec
		l := w.begin()
		must(t, l.Close())
		w.verified()
		must(t, os.Remove(w.out))
	}
}

// An agent that answers with anything else is an error, and no panic.
func TestAgentLies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	short, err := os.MkdirTemp("", "agent")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	w.keys.Agent = filepath.Join(short, "s")
	ln, err := net.Listen("unix", w.keys.Agent)
	must(t, err)
	defer ln.Close()
	for _, c := range []struct{ answer, want string }{
		{"", "EOF"},
		{"\x00\x00\x00\x00", "0 bytes"},
		{"\xff\xff\xff\xff", "bytes"},
		{"\x00\x00\x00\x01\x05", "it refused"},
		{"\x00\x00\x00\x05\x0c\x00\x00\x00\x09", "cut off"},
		{"\x00\x00\x00\x0d\x0c\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00", "cut off"},
		{"\x00\x00\x00\x05\x0c\x00\x00\x00\x00", "no Ed25519 key"},
	} {
		var serving sync.WaitGroup
		serving.Go(func() {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 64))
			_, _ = conn.Write([]byte(c.answer))
			_ = conn.Close()
		})
		_, _, err := w.keys.Open(t.Context(), "ssh-agent:x")
		serving.Wait()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.answer, err, c.want)
		}
	}
}
