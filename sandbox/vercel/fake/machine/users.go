package machine

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A machine has one user of the host, and can't have more: its users are names.
// useradd, groupadd, usermod, gpasswd, chown and sudo, as commands of their own,
// are done by the owner: they change /etc/passwd and /etc/group, and a program of
// another user sees itself as that user. Left over: every user may do what every
// other may, and files are always the same user's.

// Bounds of names.
const (
	maxUsers     = 1000
	maxNameBytes = 32
	firstUser    = 1001
)

// account is a line of /etc/passwd or /etc/group.
type account []string

// accounts are the names of a machine.
type accounts struct{ users, groups []account }

func parseAccounts(text []byte) (all []account) {
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) >= 4 {
			all = append(all, f)
		}
	}
	return all
}

func (d *Disk) accounts() (a accounts, err error) {
	for name, to := range map[string]*[]account{"passwd": &a.users, "group": &a.groups} {
		text, err := os.ReadFile(filepath.Join(d.dir, name))
		if err != nil {
			return a, err
		}
		*to = parseAccounts(text)
	}
	return a, nil
}

// save writes in place: the machine has the files bound.
func (d *Disk) save(a accounts) error {
	for name, all := range map[string][]account{"passwd": a.users, "group": a.groups} {
		var text strings.Builder
		for _, f := range all {
			text.WriteString(strings.Join(f, ":") + "\n")
		}
		if err := d.file(name, text.String()); err != nil {
			return err
		}
	}
	return nil
}

func find(all []account, name string) account {
	for _, f := range all {
		if f[0] == name {
			return f
		}
	}
	return nil
}

// known reports whether name is one of all, or a number.
func known(all []account, name string) bool {
	_, err := strconv.ParseUint(name, 10, 31)
	return err == nil || find(all, name) != nil
}

// free is an id that no user and no group has.
func (a *accounts) free() string {
	n := firstUser
	for _, f := range append(slices.Clone(a.users), a.groups...) {
		if id, err := strconv.Atoi(f[2]); err == nil && id >= n && id < 65534 {
			n = id + 1
		}
	}
	return strconv.Itoa(n)
}

func validUser(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz_"
	return name != "" && len(name) <= maxNameBytes && strings.Contains(letters, name[:1]) && strings.Trim(name, letters+"0123456789-") == ""
}

// complaint is what a tool prints, and its exit code.
type complaint struct {
	code int
	text string
}

func complain(code int, format string, args ...any) *complaint {
	return &complaint{code, fmt.Sprintf(format, args...)}
}

// command is the program that complains.
func (c *complaint) command(as Command) Command {
	as.Argv = []string{"sh", "-c", `printf '%s\n' "$1" >&2; exit "$2"`, "sh", c.text, strconv.Itoa(c.code)}
	return as
}

// tool is one that changes names. It reports a program to run, nil: none.
type tool func(a *accounts, args []string) ([]string, *complaint)

func tools() map[string]tool {
	return map[string]tool{
		"useradd": (*accounts).useradd, "groupadd": (*accounts).groupadd, "usermod": (*accounts).usermod, "gpasswd": (*accounts).gpasswd,
		"chown": (*accounts).chown,
	}
}

func (a *accounts) useradd(args []string) ([]string, *complaint) {
	home, shell, name := false, "/bin/sh", ""
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-m":
			home = true
		case args[i] == "-s" && i+1 < len(args):
			i++
			shell = args[i]
		case name == "" && validUser(args[i]):
			name = args[i]
		default:
			return nil, complain(3, "useradd: this double takes -m, -s SHELL and a name, not '%s'", args[i])
		}
	}
	switch {
	case name == "" || !path.IsAbs(shell) || strings.ContainsAny(shell, ":\n"):
		return nil, complain(3, "useradd: invalid user name or shell")
	case find(a.users, name) != nil:
		return nil, complain(9, "useradd: user '%s' already exists", name)
	case find(a.groups, name) != nil:
		return nil, complain(9, "useradd: group %s exists - if you want to add this user to that group, use -g.", name)
	case len(a.users) >= maxUsers:
		return nil, complain(1, "useradd: too many users")
	}
	id, dir := a.free(), "/home/"+name
	a.users = append(a.users, account{name, "x", id, id, "", dir, shell})
	a.groups = append(a.groups, account{name, "x", id, ""})
	if home {
		return []string{"mkdir", "-p", dir}, nil
	}
	return nil, nil
}

func (a *accounts) groupadd(args []string) ([]string, *complaint) {
	switch {
	case len(args) != 1 || !validUser(args[0]):
		return nil, complain(3, "groupadd: this double takes one valid name")
	case find(a.groups, args[0]) != nil:
		return nil, complain(9, "groupadd: group '%s' already exists", args[0])
	case len(a.groups) >= maxUsers:
		return nil, complain(1, "groupadd: too many groups")
	}
	a.groups = append(a.groups, account{args[0], "x", a.free(), ""})
	return nil, nil
}

func members(group account) []string {
	return slices.DeleteFunc(strings.Split(group[3], ","), func(m string) bool { return m == "" })
}

func (a *accounts) usermod(args []string) ([]string, *complaint) {
	if len(args) != 3 || args[0] != "-aG" {
		return nil, complain(2, "usermod: this double takes -aG GROUP USER")
	}
	group := find(a.groups, args[1])
	switch {
	case group == nil:
		return nil, complain(6, "usermod: group '%s' does not exist", args[1])
	case find(a.users, args[2]) == nil:
		return nil, complain(6, "usermod: user '%s' does not exist", args[2])
	case !slices.Contains(members(group), args[2]):
		group[3] = strings.Join(append(members(group), args[2]), ",")
	}
	return nil, nil
}

func (a *accounts) gpasswd(args []string) ([]string, *complaint) {
	if len(args) != 3 || args[0] != "-d" {
		return nil, complain(2, "gpasswd: this double takes -d USER GROUP")
	}
	group := find(a.groups, args[2])
	switch {
	case group == nil:
		return nil, complain(3, "gpasswd: group '%s' does not exist in /etc/group", args[2])
	case !slices.Contains(members(group), args[1]):
		return nil, complain(3, "gpasswd: user '%s' is not a member of '%s'", args[1], args[2])
	}
	group[3] = strings.Join(slices.DeleteFunc(members(group), func(m string) bool { return m == args[1] }), ",")
	return nil, nil
}

// chown changes nothing: all files are the same user's. It complains as the tool
// does.
func (a *accounts) chown(args []string) ([]string, *complaint) {
	paths := slices.DeleteFunc(slices.Clone(args), func(s string) bool { return strings.HasPrefix(s, "-") })
	if len(paths) < 2 {
		return nil, complain(1, "chown: missing operand")
	}
	user, group, _ := strings.Cut(paths[0], ":")
	switch {
	case user != "" && !known(a.users, user):
		return nil, complain(1, "chown: invalid user: '%s'", paths[0])
	case group != "" && !known(a.groups, group):
		return nil, complain(1, "chown: invalid group: '%s'", paths[0])
	}
	const check = `r=0; for f; do [ -e "$f" ] || [ -L "$f" ] || { printf "chown: cannot access '%s': No such file or directory\n" "$f" >&2; r=1; }; done; exit $r`
	return append([]string{"sh", "-c", check, "chown"}, paths[1:]...), nil
}

// asUser is what c is where users are names.
func (d *Disk) asUser(c Command) (Command, error) {
	name := path.Base(c.Argv[0])
	if name == "sudo" {
		a, err := d.accounts()
		if err != nil {
			return c, err
		}
		return a.sudo(c), nil
	}
	t := tools()[name]
	if t == nil || !c.Root {
		return c, nil
	}
	d.names.Lock()
	defer d.names.Unlock()
	a, err := d.accounts()
	if err != nil {
		return c, err
	}
	argv, wrong := t(&a, c.Argv[1:])
	if wrong != nil {
		return wrong.command(c), nil
	}
	if c.Argv = argv; argv == nil {
		c.Argv = []string{"true"}
	}
	return c, d.save(a)
}

// sudo is the program that c has sudo start.
func (a *accounts) sudo(c Command) Command {
	name, argv := "root", c.Argv[1:]
	for len(argv) > 0 && strings.HasPrefix(argv[0], "-") {
		option := argv[0]
		argv = argv[1:]
		if option == "--" {
			break
		}
		switch {
		case option == "-u" && len(argv) > 0:
			name, argv = argv[0], argv[1:]
		case slices.Contains([]string{"-n", "-H", "-E"}, option):
		default:
			return complain(1, "sudo: this double takes -u USER, -n, -H and -E, not '%s'", option).command(c)
		}
	}
	user := find(a.users, name)
	switch {
	case len(user) < 7:
		return complain(1, "sudo: unknown user %s", name).command(c)
	case len(argv) == 0:
		return complain(1, "usage: sudo [-u user] command").command(c)
	}
	uid, uerr := strconv.Atoi(user[2])
	gid, gerr := strconv.Atoi(user[3])
	if uerr != nil || gerr != nil {
		return complain(1, "sudo: invalid user %s", name).command(c)
	}
	env := map[string]string{}
	for _, kv := range c.Env {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	env["HOME"], env["USER"], env["LOGNAME"], env["SHELL"] = user[5], name, name, user[6]
	c.Argv, c.Env, c.Root, c.Other = argv, nil, uid == 0, nil
	for _, k := range slices.Sorted(maps.Keys(env)) {
		c.Env = append(c.Env, k+"="+env[k])
	}
	if uid != 0 {
		c.Other = &Identity{UID: uid, GID: gid}
	}
	return c
}
