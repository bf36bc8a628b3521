package shell

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// stock runs script in the interpreter that comes with the parser, with handlers
// that reach nothing, so that the holes which remain are its own.
func stock(t *testing.T, dir, script string) string {
	t.Helper()
	f, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r, err := interp.New(interp.StdIO(nil, &out, &out), interp.Dir(dir),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(context.Context, []string) error { return interp.ExitStatus(127) }
		}))
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r.Run(ctx, f) //nolint:errcheck // its output is checked
	return out.String()
}

// TestHoles tries what another interpreter, with every handler replaced, still
// reveals of the host. Each row runs there, too: a row that reveals nothing
// there would test nothing here.
func TestHoles(t *testing.T) {
	tool, err := exec.LookPath("sort")
	if err != nil {
		t.Skip("no sort on this machine")
	}
	me, err := user.Lookup("root")
	if err != nil {
		t.Skip("no root on this machine")
	}
	pid := strconv.Itoa(os.Getpid())
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("echo the secret"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(outside)+":"+os.Getenv("PATH"))
	for _, tt := range []struct{ name, script, host string }{
		{"1 command -v", `command -v sort`, tool},
		{"1 type", `type sort`, tool},
		{"1 source", `source secret; . secret`, "the secret"},
		{"2 ~user", `echo ~root`, me.HomeDir},
		{"3 $$", `echo $$`, pid},
		{"3 $PPID", `echo $PPID`, strconv.Itoa(os.Getppid())},
		{"4 fifo", `echo <(:)`, os.TempDir()},
	} {
		if got := stock(t, t.TempDir(), tt.script); !strings.Contains(got, tt.host) {
			t.Errorf("%s: without the fix there is no hole: %q has no %q", tt.name, got, tt.host)
		}
		if got := output(t, tt.script); strings.Contains(got, tt.host) {
			t.Errorf("%s: %q tells %q of the host", tt.name, got, tt.host)
		}
	}
}

// TestHoleOfDir starts in a directory that only the session has.
func TestHoleOfDir(t *testing.T) {
	if got := stock(t, "/only-inside", `echo $PWD`); !strings.Contains(got, "could not") && !strings.Contains(got, "no such file") {
		t.Errorf("without the fix there is no hole: %q", got)
	}
	b := newBench(t)
	if err := os.Mkdir(filepath.Join(b.dir, "only-inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(t.Context(), t, `cd /only-inside && echo $PWD; cd /etc || echo no`); err != nil || b.out.String() != "/only-inside\nno\n" {
		t.Errorf("%v, %q", err, b.out.String())
	}
}

// TestHoleOfOwner asks who owns a file. No uid of the host decides that.
func TestHoleOfOwner(t *testing.T) {
	if got := output(t, `echo x > f; [ -O f ] && [ -G f ] && [ f -ef ./f ] && [[ -O f ]] && echo mine; echo $UID $EUID $GROUPS`); got != "mine\n1000 1000 1000\n" {
		t.Errorf("got %q", got)
	}
}

// TestNothingOfTheHost searches what a script can print for values of the host.
func TestNothingOfTheHost(t *testing.T) {
	t.Setenv("EGRESSD_SECRET", "of-the-host")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("HOME", "/home/of-the-host")
	t.Setenv("TZ", "America/New_York")
	got := output(t, `set; env; export -p; declare -p; echo ~ $HOME $TMPDIR; printf '%(%Z)T\n' 0; cat <(echo x) <(echo y) > >(cat); umask; ulimit -a; times`)
	host, _ := os.Hostname()
	for _, secret := range []string{"of-the-host", dir, "New_York", "\nEST\n", "\nEDT\n"} {
		if strings.Contains(got, secret) {
			t.Errorf("%q is in the output", secret)
		}
	}
	if len(host) > 4 && strings.Contains(got, host) {
		t.Errorf("the host's name %q is in the output", host)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d files are left in the host's temporary directory", len(left))
	}
}

// TestDescriptorsOfTheHost makes pipes, which use no descriptor of the host.
func TestDescriptorsOfTheHost(t *testing.T) {
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc")
		}
		return len(list)
	}
	b := newBench(t)
	most := 0
	b.table["cat"] = nil
	delete(b.table, "cat")
	before := count()
	b.run(t.Context(), t, `: | : | : | : | : | : | : | : | { read x; }; read y < <(echo a); read z <<< b; exec 3> >(read q)`)
	if most = count(); most > before {
		t.Errorf("%d descriptors before, %d after", before, most)
	}
}
