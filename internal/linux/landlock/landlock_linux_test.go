package landlock

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// confined runs do on a thread of its own that f confines, and is thrown away.
func confined(t *testing.T, f Files, do func() error) error {
	t.Helper()
	if ABI() < 1 {
		t.Skip(ErrNotSupported)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never back
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = Confine(f)
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

func TestConfine(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, other} {
		if err := os.WriteFile(filepath.Join(d, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func(path string, flags int) func() error {
		return func() error {
			fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	read, write := Files{Read: []string{dir}}, Files{Write: []string{dir}}
	for _, tt := range []struct {
		name  string
		files Files
		do    func() error
		want  error
	}{
		{"read what is to be read", read, open(dir+"/file", unix.O_RDONLY), nil},
		{"list it", read, open(dir, unix.O_RDONLY|unix.O_DIRECTORY), nil},
		{"write it", read, open(dir+"/file", unix.O_WRONLY), unix.EACCES},
		{"make something there", read, open(dir+"/new", unix.O_WRONLY|unix.O_CREAT), unix.EACCES},
		{"write what is to be written", write, open(dir+"/file", unix.O_RDWR), nil},
		{"make something", write, open(dir+"/made", unix.O_WRONLY|unix.O_CREAT), nil},
		{"remove it", write, func() error { return unix.Unlink(dir + "/made") }, nil},
		{"move it elsewhere", write, func() error { return unix.Rename(dir+"/file", other+"/moved") }, unix.EACCES},
		{"read another file", write, open(other+"/file", unix.O_RDONLY), unix.EACCES},
		{"list the root", write, open("/", unix.O_RDONLY|unix.O_DIRECTORY), unix.EACCES},
		{"make a pipe", write, func() error { return unix.Mkfifo(dir+"/fifo", 0o600) }, unix.EACCES},
		{"make a link", write, func() error { return unix.Symlink("/etc", dir+"/link") }, nil},
		{"execute", write, func() error { return unix.Exec("/bin/true", []string{"true"}, nil) }, unix.EACCES},
	} {
		if err := confined(t, tt.files, tt.do); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := confined(t, Files{Read: []string{dir + "/missing"}}, func() error { return nil }); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := os.ReadDir("/"); err != nil {
		t.Errorf("other threads are confined, too: %v", err)
	}
}
