package machine

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// Users are names: what tools do with them, and what programs see.
func TestUsers(t *testing.T) {
	d := newDisk(t)
	m := boot(t, d)
	run := func(root bool, argv ...string) string {
		t.Helper()
		p := start1(t, m, Command{Argv: argv, Dir: "/", Env: env(), Root: root})
		out, err := io.ReadAll(p.Stdout)
		if err != nil {
			t.Fatal(err)
		}
		errs, err := io.ReadAll(p.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		e := <-p.Exited
		return strings.TrimSpace(string(out)+string(errs)) + map[bool]string{true: "", false: " failed"}[e.Code == 0]
	}
	own := run(false, "id", "-un")
	for _, tt := range []struct {
		argv string
		want string
	}{
		{"useradd -m -s /bin/sh alice", ""},
		{"useradd -m alice", "useradd: user 'alice' already exists failed"},
		{"useradd Bad", "useradd: this double takes -m, -s SHELL and a name, not 'Bad' failed"},
		{"useradd -s /bin/sh:x eve", "useradd: invalid user name or shell failed"},
		{"useradd bob", ""},
		{"groupadd devs", ""},
		{"groupadd devs", "groupadd: group 'devs' already exists failed"},
		{"groupadd a:b", "groupadd: this double takes one valid name failed"},
		{"usermod -aG devs alice", ""},
		{"usermod -aG devs bob", ""},
		{"usermod -aG none alice", "usermod: group 'none' does not exist failed"},
		{"usermod -aG devs none", "usermod: user 'none' does not exist failed"},
		{"id -nG alice", "alice devs"},
		{"gpasswd -d alice devs", ""},
		{"gpasswd -d alice devs", "gpasswd: user 'alice' is not a member of 'devs' failed"},
		{"id -nG alice", "alice"},
		{"grep -o ^devs:x:\\|:bob$ /etc/group", "devs:x:\n:bob"},
		{"chown alice:devs /home/alice", ""},
		{"chown none /home/alice", "chown: invalid user: 'none' failed"},
		{"chown alice:none /home/alice", "chown: invalid group: 'alice:none' failed"},
		{"chown alice /none", "chown: cannot access '/none': No such file or directory failed"},
		{"chmod 770 /home/alice", ""},
	} {
		if got := run(true, strings.Fields(tt.argv)...); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.argv, got, tt.want)
		}
	}
	for _, tt := range [][2]string{
		{"sudo -u alice -- sh -c id<-un;id<-gn;echo<$HOME<$USER;touch<~/made", "alice\nalice\n/home/alice alice"},
		{"sudo -n id -u", "0"},
		{"sudo -u " + own + " id -un", own},
		{"sudo -u none id", "sudo: unknown user none failed"},
		{"sudo -z id", "sudo: this double takes -u USER, -n, -H and -E, not '-z' failed"},
		{"sudo -u alice", "usage: sudo [-u user] command failed"},
		{"useradd carol", "denied"},
		{"stat -c %U /home/alice/made", own},
	} {
		fields := strings.Fields(tt[0])
		for i, f := range fields {
			fields[i] = strings.ReplaceAll(f, "<", " ")
		}
		if got := run(false, fields...); got != tt[1] && (tt[1] != "denied" || !strings.HasSuffix(got, "failed")) {
			t.Errorf("%s: got %q, want %q", tt[0], got, tt[1])
		}
	}
	m.Stop()
	c, err := d.Copy(filepath.Join(filepath.Dir(d.dir), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	m = boot(t, c)
	if got := run(false, "id", "-nG", "bob"); got != "bob devs" {
		t.Errorf("in a copy: %q", got)
	}
	m.Stop()
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
}
