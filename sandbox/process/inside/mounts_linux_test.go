package inside

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/mountinfo"
	"egressd/sandbox/process/control"
)

// A place for a file must not be made through a link: it would be made where
// the link leads, on the host.
func TestMountPoint(t *testing.T) {
	dir := host(t, map[string]string{"file": "kept"})
	if err := mountPoint(dir+"/a/b/c", true); err != nil {
		t.Fatal(err)
	}
	if err := mountPoint(dir+"/a/d/e", false); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(dir + "/a/b/c"); err != nil || !fi.IsDir() {
		t.Errorf("%v, %v", fi, err)
	}
	if fi, err := os.Stat(dir + "/a/d/e"); err != nil || !fi.Mode().IsRegular() {
		t.Errorf("%v, %v", fi, err)
	}
	if err := mountPoint(dir+"/file", false); err != nil || content(t, dir+"/file") != "kept" {
		t.Errorf("%v, %s", err, content(t, dir+"/file"))
	}
	if err := os.Symlink(dir+"/elsewhere", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := mountPoint(dir+"/link", false); !errors.Is(err, unix.ELOOP) {
		t.Errorf("through a link: %v", err)
	}
	if _, err := os.Lstat(dir + "/elsewhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was made where the link leads: %v", err)
	}
}

func TestBindOver(t *testing.T) {
	freshMounts(t)
	dir := host(t, map[string]string{"source/file": "from the source", "target/": "", "writable/": ""})
	if err := bindOver(dir+"/source", dir+"/target", true); err != nil {
		t.Fatal(err)
	}
	if got := content(t, dir+"/target/file"); got != "from the source" {
		t.Errorf("got %q", got)
	}
	refuses(t, dir+"/target/file", unix.EROFS)
	if err := bindOver(dir+"/source", dir+"/writable", false); err != nil {
		t.Fatal(err)
	}
	refuses(t, dir+"/writable/file", nil) // only the read-only copy is
	if err := bindOver(dir+"/source", dir+"/none", true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("on nothing: %v", err)
	}
	if err := bindOver(dir+"/none", dir+"/target", true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing over it: %v", err)
	}
}

// Private directories have one bound, so they are one file system; but none
// shows what is in another, and the launcher's umask does not close them.
func TestRooms(t *testing.T) {
	b := freshMounts(t)
	defer unix.Umask(unix.Umask(0o777))
	one, two := host(t, map[string]string{"of the host": "x"}), host(t, nil)
	for path, mode := range map[string]uint32{one: 0o1777, two: 0o755} {
		if err := b.mountRoom(path, mode); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(path)
		if err != nil || fi.Sys().(*syscall.Stat_t).Mode&0o7777 != mode {
			t.Errorf("mode %v, want %o (%v)", fi.Mode(), mode, err)
		}
	}
	var a, c unix.Stat_t
	if err := errors.Join(unix.Stat(one, &a), unix.Stat(two, &c)); err != nil {
		t.Fatal(err)
	}
	if a.Dev != c.Dev || a.Ino == c.Ino {
		t.Errorf("devices %d, %d; directories %d, %d", a.Dev, c.Dev, a.Ino, c.Ino)
	}
	for _, name := range []string{"/of the host", "/../1", "/0", "/1"} {
		if _, err := os.Stat(one + name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is to be seen: %v", name, err)
		}
	}
}

// The program's own temporary directories are made in a private root, closed to
// others, and never on the host.
func TestPrivateDirectories(t *testing.T) {
	b := freshMounts(t)
	root, outside := host(t, map[string]string{"secret": "x"}), host(t, nil)
	b.cfg.Plan.Roots = []string{root}
	b.cfg.TmpDir, b.cfg.RuntimeDir = root+"/mine/tmp", outside+"/runtime"
	if err := b.mountPrivate(); err != nil {
		t.Fatal(err)
	}
	if got := content(t, root+"/secret"); got == "x" {
		t.Error("the host's file is to be seen")
	}
	if fi, err := os.Stat(root + "/mine/tmp"); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
	if _, err := os.Stat(outside + "/runtime"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was made on the host: %v", err)
	}
}

// What is brought back lies over the private root; what is gone since is left
// out, and a link that an outer bind brought is not mounted over.
func TestBringBack(t *testing.T) {
	b := freshMounts(t)
	root := host(t, map[string]string{"kept/file": "x", "kept/inner/": "", "hidden": "x"})
	if err := os.Symlink("inner", root+"/kept/link"); err != nil {
		t.Fatal(err)
	}
	b.cfg.Plan = control.Plan{Roots: []string{root}, Binds: []control.Bind{
		{Path: root + "/kept", Source: root + "/kept", Dir: true},
		{Path: root + "/kept/link", Source: root + "/kept/inner", Dir: true},
		{Path: root + "/gone", Source: root + "/gone", ReadOnly: true},
	}}
	for _, step := range []func() error{b.pickBinds, b.mountPrivate, b.bringBack} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if got := content(t, root+"/kept/file"); got != "x" {
		t.Errorf("got %q", got)
	}
	if got, err := os.Readlink(root + "/kept/link"); err != nil || got != "inner" {
		t.Errorf("link: %q, %v", got, err)
	}
	for _, name := range []string{"/hidden", "/gone"} {
		if _, err := os.Stat(root + name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.cfg.Plan.Binds = []control.Bind{{Path: "/x", Source: root + "/gone"}}
	if err := b.pickBinds(); err == nil {
		t.Error("a writable bind that is gone is no failure")
	}
}

// Read-only means the host; what was picked up for writing before stays so.
func TestReadOnly(t *testing.T) {
	b := freshMounts(t)
	dir := host(t, map[string]string{"of the host": "x", "shown/file": "x"})
	b.cfg.Plan.Shown = []control.Bind{{Path: dir + "/shown", Source: dir + "/shown", Dir: true}}
	for _, step := range []func() error{b.pickShown, b.readOnly, b.show} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	refuses(t, dir+"/of the host", unix.EROFS)
	refuses(t, dir+"/shown/file", nil)
}

// What somebody removes outside between the plan and the mounts is not mounted, and
// the rest is: a home directory that goes away fails no run.
func TestGoneOutside(t *testing.T) {
	b := freshMounts(t)
	dir := host(t, map[string]string{"gone/cache/": "", "gone/home/": "", "stays/": ""})
	b.cfg.Plan.Places = []control.Place{
		{Path: dir + "/gone/cache", Kind: control.PlaceWritable, Dir: true},
		{Path: dir + "/gone/home", Kind: control.PlacePrivate, Dir: true},
		{Path: dir + "/stays", Kind: control.PlaceWritable, Dir: true},
	}
	for _, step := range []func() error{b.pickPlaces, func() error { return os.RemoveAll(dir + "/gone") }, b.readOnly, b.mountPlaces} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Lstat(dir + "/gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed is there: %v", err)
	}
	refuses(t, dir+"/stays/file", nil)
	refuses(t, dir+"/file", unix.EROFS)
}

// A directory of the host that lacks a place keeps all that is in it, and is
// itself not changed.
func TestTakeApart(t *testing.T) {
	b := freshMounts(t)
	outside := host(t, map[string]string{"data": "shown"})
	dir := host(t, map[string]string{"parent/file": "kept", "parent/dir/inner": "kept too"})
	parent := dir + "/parent"
	if err := os.Symlink("file", parent+"/link"); err != nil {
		t.Fatal(err)
	}
	before, err := os.Open(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	b.cfg.Plan.Shown = []control.Bind{{Path: parent + "/new/deep", Source: outside, Dir: true}}
	for _, step := range []func() error{b.pickShown, b.makePlaces, b.show} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"/file": "kept", "/link": "kept", "/dir/inner": "kept too", "/new/deep/data": "shown"} {
		if got := content(t, parent+name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	refuses(t, parent+"/another", unix.EROFS) // it would be lost, as it is not on the host
	if names, err := before.Readdirnames(-1); err != nil || len(names) != 3 {
		t.Errorf("the host's directory has %q now (%v)", names, err)
	}
}

func TestTakeApartIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range maxEntries + 1 {
		files[strconv.Itoa(i)] = ""
	}
	if _, err := entriesOf(host(t, files)); err == nil {
		t.Error("no error")
	}
}

// The run's own files can be read by every user inside and changed by none,
// whatever the launcher's umask.
func TestFiles(t *testing.T) {
	freshMounts(t)
	defer unix.Umask(unix.Umask(0o777))
	dir := host(t, nil)
	if err := mountFiles(dir, map[string][]byte{"resolv.conf": []byte(resolvConf)}); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(dir + "/resolv.conf")
	if err != nil || fi.Mode().Perm() != 0o444 || content(t, dir+"/resolv.conf") != resolvConf {
		t.Errorf("%v, %v: %q", fi, err, content(t, dir+"/resolv.conf"))
	}
	refuses(t, dir+"/resolv.conf", unix.EROFS)
	refuses(t, dir+"/another", unix.EROFS)
}

// A protected file cannot be changed, nor can it or a directory above it be
// replaced by another of the name.
func TestProtect(t *testing.T) {
	b := freshMounts(t)
	dir := host(t, map[string]string{"a/b/policy": "deny", "other/": ""})
	if err := os.Link(dir+"/a/b/policy", dir+"/other/name"); err != nil {
		t.Fatal(err)
	}
	b.cfg.Protect = []control.Guarded{{File: dir + "/a/b/policy", Names: []string{dir + "/other/name"}}}
	if err := b.protect(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/a/b/policy", "/other/name"} {
		refuses(t, dir+name, unix.EROFS)
		if err := os.Remove(dir + name); !errors.Is(err, unix.EBUSY) {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	for _, name := range []string{"/a/b/policy", "/a/b", "/a", "/other"} {
		if err := os.Rename(dir+name, dir+name+" away"); !errors.Is(err, unix.EBUSY) {
			t.Errorf("rename %s: %v", name, err)
		}
	}
	refuses(t, dir+"/a/b/free", nil) // what is beside it is not concerned
	b.cfg.Protect = []control.Guarded{{File: dir + "/none"}}
	if err := b.protect(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there is not protected, and nobody is told: %v", err)
	}
}

// A socket that is masked refuses everybody; what is no socket by now is left
// alone.
func TestMaskSockets(t *testing.T) {
	b := freshMounts(t)
	if err := b.mountRoom("/dev", 0o755); err != nil { // as mountDev does, and /dev of the host stays as it is
		t.Fatal(err)
	}
	dir := host(t, map[string]string{"file": "kept"})
	ln, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	b.cfg.Plan.Masks = []string{dir + "/gone", dir + "/file", dir + "/s"}
	if err := b.maskSockets(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: dir + "/s"}); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("connect: %v", err)
	}
	if got := content(t, dir+"/file"); got != "kept" {
		t.Errorf("file: %q", got)
	}
	if _, err := os.Lstat("/dev/.masked"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mask stays: %v", err)
	}
	b.cfg.Plan.Masks = make([]string, control.MaxMasks+1)
	if err := b.maskSockets(); err == nil {
		t.Error("not all can be hidden, and the run goes on")
	}
}

// The machine's files are covered wherever they are mounted a second time; an
// ordinary file system is not.
func TestCoverElsewhere(t *testing.T) {
	b := freshMounts(t)
	dir := host(t, map[string]string{"proc/": "", "status": "", "plain/": ""})
	for source, target := range map[string]string{"/proc": "/proc", "/proc/self/status": "/status", dir: "/plain"} {
		if err := bindOver(source, dir+target, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/proc", "/status", "/plain", "/gone"} {
		b.mounts = append(b.mounts, mountinfo.Entry{Point: dir + name})
	}
	if err := b.coverElsewhere(); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(dir + "/proc"); err != nil || len(names) > 0 {
		t.Errorf("/proc: %d entries, %v", len(names), err)
	}
	if got := content(t, dir+"/status"); got != "" {
		t.Errorf("status: %q", got)
	}
	if _, err := os.Stat(dir + "/plain/status"); err != nil {
		t.Errorf("an ordinary file system is covered: %v", err)
	}
	refuses(t, dir+"/proc/x", unix.EROFS)
}
