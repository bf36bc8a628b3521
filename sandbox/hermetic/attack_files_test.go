//go:build linux

package hermetic

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/sandbox"
)

const outsideText = "text of a file outside"

// bare is a backend without the kernel's wall around files, which would hide a
// hole in the one that is tested.
func bare() *Backend { return &Backend{hooks: testHooks{skip: []string{"landlock"}}} }

// look is what lies below dir: content, mode and time of everything.
func look(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %v", path, i.Mode(), i.ModTime())
		switch {
		case i.Mode().IsRegular():
			text, err := os.ReadFile(path)
			fmt.Fprintf(&b, " %q", text)
			return err
		case i.Mode()&fs.ModeSymlink != 0:
			text, err := os.Readlink(path)
			fmt.Fprintf(&b, " %q", text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// besides makes a workspace, and a directory outside it with a file f in it.
func besides(t *testing.T) (work, outside string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, outside = filepath.Join(top, "work"), filepath.Join(top, "outside")
	for _, dir := range []string{work, outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(outside, "f"), outsideText)
	return work, outside
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reads and writes are the commands of the tier that open the file $f.
const (
	reads = `cat "$f"
head "$f"
tac "$f"
nl "$f"
awk 1 "$f"
awk -v f="$f" 'BEGIN{while((getline l < f)>0) print l}'
awk -f "$f"
sed -n p "$f"
sed "r $f" plain
sed "R $f" plain
sed -n "1e cat $f" plain
grep -f "$f" plain
grep -r '' "$f"
sort "$f"
sort --files0-from="$f"
wc --files0-from="$f"
diff "$f" plain
join "$f" plain
jq -R . "$f"
jq -n --rawfile a "$f" '$a'
jq -nf "$f"
jq -n "include \"f\" {search:\"$f/..\"}; 1"
yq . "$f"
tar cf - "$f"
tar cf - -T "$f"
tar -C "$f" -cf - .
xargs -a "$f" echo
. "$f"
read x <"$f"; echo "$x"
echo "$(<"$f")"
mapfile a <"$f"; echo "${a[@]}"
exec 9<"$f"; cat <&9
BASH_ENV="$f" bash -c :
bash --rcfile "$f" -i -c :
bash "$f"
history -r "$f"; history
date -f "$f"
file -f "$f"
md5sum -c "$f"
od -c "$f"
xxd "$f"
dd if="$f"
cp "$f" /tmp/c; cat /tmp/c
cp -rL "$f" /tmp/c; cat /tmp/c
ln "$f" l; cat l
ln -sf "$f" s; cat s
gzip -c "$f"
patch -o - plain "$f"
find "$f" -type f -exec cat {} +
cd "$f"; cat *
tree "$f"
touch -r "$f" plain
install "$f" /tmp/i; cat /tmp/i`
	writes = `echo x >"$f"
echo x >>"$f"
echo x >|"$f"
: <>"$f"
touch "$f"
chmod 777 "$f"
truncate -s 0 "$f"
sed -i s/t/x/ "$f"
sed -n "w $f" plain
tee "$f" <plain
cp -f plain "$f"
mv plain "$f"; echo p >plain
ln -sf plain "$f"
sort -o "$f" plain
uniq plain "$f"
dd if=plain of="$f"
split -n 1 plain "$f"
awk -v f="$f" 'BEGIN{print 1 >f}'
tar cf "$f" plain
gzip "$f"
install plain "$f"
rm -rf "$f"
mkdir -p "$f/x"
find "$f" -delete`
)

// No command reads or changes a file outside, whatever the file is called.
func TestFilesOutside(t *testing.T) {
	work, outside := besides(t)
	put(t, filepath.Join(work, "plain"), "p\n")
	up := strings.Repeat("../", 12)
	for name, target := range map[string]string{
		"abs": outside + "/f", "rel": "../outside/f", "dir": outside, "root": "/", "proc": "/proc/self/root", "chain": "chain2", "chain2": "dir/f",
	} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(work, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	names := []string{
		outside + "/f", "abs", "rel", "dir/f", "root" + outside + "/f", "proc" + outside + "/f", "chain", "../outside/f", up + outside + "/f",
		"/proc/self/root" + outside + "/f", "/dev/.." + outside + "/f", "/dev/fd/../.." + outside + "/f", "/tmp/../.." + outside + "/f", "file://" + outside + "/f",
		"/dev/fd/3", "/dev/fd/4", "/dev/fd/5", "/proc/self/fd/3", "/proc/1/environ", "/dev/tty", "/dev/tcp/127.0.0.1/1", "fifo",
	}
	before := look(t, outside)
	var script strings.Builder
	for _, name := range names {
		for cmd := range strings.Lines(reads + "\n" + writes) {
			fmt.Fprintf(&script, "f='%s'; ( %s ) 2>&1 </dev/null; rm -f s l /tmp/?\n", name, strings.TrimSpace(cmd))
		}
	}
	o := run(t, bare(), sandbox.Spec{Dir: work, Script: script.String() + "echo the end", Timeout: 40 * time.Second})
	if o.code != 0 || o.failure != nil || !strings.HasSuffix(o.out, "the end\n") {
		t.Errorf("%d %v %v %.300q", o.code, o.failure, o.notes, o.err)
	}
	if strings.Contains(o.out, outsideText) {
		t.Errorf("read: %.300s", o.out[strings.Index(o.out, outsideText):])
	}
	if after := look(t, outside); after != before {
		t.Errorf("outside is\n%s\nand was\n%s", after, before)
	}
}

// A file with a second name outside is never changed there.
func TestHardLinkFromOutside(t *testing.T) {
	work, outside := besides(t)
	put(t, filepath.Join(work, "plain"), "p\n")
	before := look(t, outside)
	for line := range strings.Lines(writes) {
		name := filepath.Join(work, "hard")
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(outside, "f"), name); err != nil {
			t.Fatal(err)
		}
		run(t, bare(), sandbox.Spec{Dir: work, Script: "f=hard; " + line})
		if after := look(t, outside); after != before {
			t.Fatalf("%s: outside is\n%s\nand was\n%s", line, after, before)
		}
	}
}

// Somebody swaps parts of the workspace for links to the outside while the
// script reads and writes them.
func TestSwaps(t *testing.T) {
	work, outside := besides(t)
	for _, dir := range []string{"d/d", "g"} {
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"f", "d/f", "d/d/f", "g/f"} {
		put(t, filepath.Join(work, name), "inside")
	}
	for name, target := range map[string]string{"lf": outside + "/f", "ld": outside, "lu": "../outside"} {
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := look(t, outside)
	ctx, stop := context.WithCancel(t.Context())
	var swapping sync.WaitGroup
	swapping.Go(func() { swap(ctx, t, work) })
	o := run(t, bare(), sandbox.Spec{Dir: work, Script: `
again() { for ((i = 0; i < 150; i++)); do eval "$1" 2>/dev/null; done; }
for c in 'cat f d/f d/d/f g/f' 'echo x >f; echo x >d/f; echo x >g/n$i' 'chmod 600 f d/f; touch -d @1 d/f f' 'rm -f d/f d/n*' 'sed -i s/t/x/ f d/f' \
	'cp -r d e; cat e/f; rm -rf e' 'tar cf - d | tar xOf -' 'find . -type f -exec cat {} +' 'cat d/*; cat */*' 'mv f d/q; mv d/q f; ln -sf x d/s'
do again "$c" & done; wait`, Timeout: 30 * time.Second})
	stop()
	swapping.Wait()
	if o.failure != nil || strings.Contains(o.out, outsideText) {
		t.Errorf("%v: read what is outside: %t", o.failure, strings.Contains(o.out, outsideText))
	}
	if after := look(t, outside); after != before {
		t.Errorf("outside is\n%s\nand was\n%s", after, before)
	}
}

// swap exchanges names below work until ctx ends. It holds the directories, so
// that it goes through none of the links itself.
func swap(ctx context.Context, t *testing.T, work string) {
	top, err := unix.Open(work, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer unix.Close(top)
	below, err := unix.Openat(top, "d", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer unix.Close(below)
	for ctx.Err() == nil {
		for _, p := range []struct {
			dir   int
			a, to string
		}{{top, "f", "lf"}, {top, "d", "ld"}, {below, "f", "lf"}, {top, "g", "lu"}, {below, "d", "ld"}} {
			_ = unix.Renameat2(p.dir, p.a, top, p.to, unix.RENAME_EXCHANGE) // the script takes names away, too
		}
	}
}
