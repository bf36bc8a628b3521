package modes

import (
	"io/fs"
	"testing"
)

func TestApply(t *testing.T) {
	for _, c := range []struct {
		mode string
		old  Bits
		dir  bool
		want Bits
	}{
		{"755", 0o644, false, 0o755},
		{"u+x", 0o644, false, 0o744},
		{"+x", 0o644, false, 0o755},
		{"+w", 0o444, false, 0o644}, // the umask is 022
		{"go-rwx", 0o777, false, 0o700},
		{"a=rX", 0o600, false, 0o444},
		{"a=rX", 0o600, true, 0o555},
		{"g=u,o=", 0o640, false, 0o660},
		{"u+s,+t", 0o755, false, 0o5755},
		{"755", 0o2755, true, 0o2755},  // a directory keeps its set-group-ID
		{"00755", 0o2755, true, 0o755}, // until five digits speak of it
		{"=", 0o777, false, 0},
		{"u=rwx,go=rx", 0, false, 0o755},
		{"-222", 0o666, false, 0o444},
	} {
		ch, err := Parse(c.mode)
		if err != nil {
			t.Errorf("%s: %v", c.mode, err)
			continue
		}
		if got := ch.Apply(c.old, c.dir, 0o022); got != c.want {
			t.Errorf("%s makes %04o of %04o, want %04o", c.mode, got, c.old, c.want)
		}
	}
	for _, bad := range []string{"", "9", "77777", "u", "u+y", "x+u", "u+x,", "u+7", "0x1"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is taken for a mode", bad)
		}
	}
}

func TestString(t *testing.T) {
	for m, want := range map[fs.FileMode]string{
		0o644: "-rw-r--r--", fs.ModeDir | fs.ModeSticky | 0o777: "drwxrwxrwt", fs.ModeSymlink | 0o777: "lrwxrwxrwx",
		fs.ModeSetuid | 0o655: "-rwSr-xr-x", fs.ModeSetgid | 0o755: "-rwxr-sr-x", fs.ModeDevice | fs.ModeCharDevice | 0o666: "crw-rw-rw-",
	} {
		if got := String(m); got != want {
			t.Errorf("%v is %s, want %s", m, got, want)
		}
		if Of(m).FileMode() != m&^fs.ModeType {
			t.Errorf("%v does not come back", m)
		}
	}
}
