//go:build unix

package unixsocket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A socket's file that a killed daemon left is replaced, and nothing else is.
func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	ln, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another egressd") {
		t.Errorf("a socket that somebody answers: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("%v, %v", info, err)
	}
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, []byte("keep me"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), plain); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("a file: %v", err)
	}
	if data, err := os.ReadFile(plain); err != nil || string(data) != "keep me" {
		t.Errorf("the file now holds %q, %v", data, err)
	}
}
