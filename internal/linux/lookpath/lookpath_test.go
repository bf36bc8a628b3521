//go:build unix

package lookpath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func file(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, mode); err != nil {
		t.Fatal(err)
	}
}

// The directory and PATH are the program's, not this process's, and a file that
// cannot be executed does not hide one further on.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	file(t, dir+"/one/tool", 0o644)
	file(t, dir+"/two/tool", 0o755)
	file(t, dir+"/two/only", 0o755)
	file(t, dir+"/one/data", 0o644)
	file(t, dir+"/two/dir/x", 0o755)
	list := "one:" + dir + "/two:/no/such/directory"
	for _, c := range []struct {
		name, want string
		err        error
		code       int
	}{
		{"tool", dir + "/two/tool", nil, 0},
		{"only", dir + "/two/only", nil, 0},
		{"two/only", dir + "/two/only", nil, 0}, // a path: PATH is not asked
		{"./two/only", dir + "/two/only", nil, 0},
		{dir + "/two/only", dir + "/two/only", nil, 0},
		{"only/", dir + "/only", fs.ErrNotExist, 127},
		{"none", "", fs.ErrNotExist, 127},
		{"data", "", fs.ErrPermission, 126}, // there, but not to be executed
		{"dir", "", syscall.EISDIR, 126},
		{"two/only/x", dir + "/two/only/x", syscall.ENOTDIR, 127},
	} {
		got, err := Find(c.name, dir, list)
		if got != c.want && c.err == nil || !errors.Is(err, c.err) {
			t.Errorf("%q: %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
		if err != nil && ExitCode(err) != c.code {
			t.Errorf("%q: exit code %d, want %d", c.name, ExitCode(err), c.code)
		}
	}
}
