package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/sandbox"
)

// nestedAttack tries, with every capability in namespaces of its own, what the
// sandbox hides, protects and captures. Each line that it prints is a way out.
const nestedAttack = `
umount -l /tmp; umount -l /run; umount -l "$1"
mount -o remount,bind,rw "$1"
mount -o remount,bind,rw /proc/sys
mkdir -p /tmp/view; mount --bind / /tmp/view
mount -t proc proc /tmp/view
ip link set lo up; ip route add default dev lo
exec 2>/dev/null
test -e "$2" && echo "sees a socket of the host"
test -e "/tmp/view$2" && echo "sees a socket of the host below a bind"
(echo changed >>"$1") && echo "writes a protected file"
(echo core >/proc/sys/kernel/core_pattern) && echo "writes core_pattern"
mv "$1" "$1.moved" && echo "moves a protected file"
timeout 2 bash -c 'exec 3<>/dev/tcp/192.0.2.77/443' && echo "connects"
echo done
`

// TestNested lets programs make namespaces and holds every layer in there.
func TestNested(t *testing.T) {
	needNamespaces(t)
	if os.Geteuid() == 0 {
		t.Skip("the kernel lets uid 0 map itself only with CAP_SETFCAP; the run as an ordinary user tries this")
	}
	dir := tempDir(t, "/var/tmp")
	file, socket := filepath.Join(dir, "policy.yaml"), filepath.Join(tempDir(t, "/tmp"), "s")
	if err := os.WriteFile(file, []byte("kept\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	listenUnix(t, socket)
	script := "unshare -Urnmp --fork sh -c '" + strings.ReplaceAll(nestedAttack, "'", `'\''`) + "' x " + file + " " + socket + " 2>/dev/null; true"

	// The file's directory is the working directory, which is brought back.
	spec := sandbox.Spec{Argv: []string{"/bin/sh", "-c", script}, Dir: dir}
	unprotected := spec
	spec.Protect = []string{file}
	got := run(t, &Backend{Nested: true}, spec)
	if strings.TrimSpace(got.out) != "done" {
		t.Errorf("nested: %q, want done alone", got.out)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "kept\n" {
		t.Errorf("the protected file is now %q, %v", data, err)
	}
	if got := run(t, &Backend{Nested: true, hooks: without("protect").hooks}, unprotected); !strings.Contains(got.out, "writes a protected file") {
		t.Errorf("unprotected, the file was not written either, so this test shows nothing: %q", got.out)
	}
	if got := run(t, &Backend{}, spec); got.out != "" {
		t.Errorf("without Nested namespaces are made: %q", got.out)
	}
}
