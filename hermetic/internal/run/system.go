package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// nobody is what who and users say: nobody is logged in.
func nobody(w *gnu.Work) {
	w.Options("[OPTION]... [FILE]", "a,all b,boot d,dead H,heading l,login q,count r,runlevel s,short t,time T,mesg w u,users m p,process ,message ,writable ,lookup")
}

func whoami(w *gnu.Work) {
	_, operands, ok := w.Options("", "")
	if ok && !w.Extra(operands, 0) {
		fmt.Fprintln(w.Out, user)
	}
}

func logname(w *gnu.Work) {
	_, operands, ok := w.Options("", "")
	if ok && !w.Extra(operands, 0) {
		fmt.Fprintln(w.Out, user)
	}
}

func groups(w *gnu.Work) {
	_, names, ok := w.Options("[USERNAME]...", "")
	if !ok {
		return
	}
	if len(names) == 0 {
		fmt.Fprintln(w.Out, user)
	}
	for _, n := range names {
		if n != user && n != userID {
			w.Fault("%s: no such user", gnu.Quote(n))
			continue
		}
		fmt.Fprintf(w.Out, "%s : %s\n", n, user)
	}
}

func id(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... [USER]...", "a Z,context g,group G,groups n,name r,real u,user z,zero")
	if !ok {
		return
	}
	has := func(name string) bool {
		return slices.ContainsFunc(sets, func(s command.Set) bool { return s.Name == name })
	}
	kinds := b2i(has("user")) + b2i(has("group")) + b2i(has("groups"))
	switch {
	case has("context"):
		w.Die(1, "--context (-Z) works only on an SELinux-enabled kernel")
		return
	case kinds > 1:
		w.Die(1, "cannot print \"only\" of more than one choice")
		return
	case kinds == 0 && (has("name") || has("real")):
		w.Die(1, "printing only names or real IDs requires -u, -g, or -G")
		return
	case kinds == 0 && has("zero"):
		w.Die(1, "option --zero not permitted in default format")
		return
	}
	end := "\n"
	if has("zero") {
		end = "\x00"
	}
	text := "uid=1000(user) gid=1000(user) groups=1000(user)"
	if kinds > 0 {
		text = userID
		if has("name") {
			text = user
		}
	}
	if len(names) == 0 {
		names = []string{user}
	}
	for _, n := range names {
		if n != user && n != userID {
			w.Fault("%s: no such user", gnu.Quote(n))
			continue
		}
		fmt.Fprint(w.Out, text, end)
	}
}

func uname(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]...",
		"a,all s,kernel-name ,sysname n,nodename r,kernel-release ,release v,kernel-version m,machine p,processor i,hardware-platform o,operating-system")
	if !ok || w.Extra(operands, 0) {
		return
	}
	fields := []struct{ name, value string }{
		{"kernel-name", "Linux"},
		{"nodename", host},
		{"kernel-release", "6.1.0"},
		{"kernel-version", "#1 SMP hermetic"},
		{"machine", "x86_64"},
		{"processor", "unknown"},
		{"hardware-platform", "unknown"},
		{"operating-system", "GNU/Linux"},
	}
	want := map[string]bool{}
	for _, s := range sets {
		name := map[string]string{"sysname": "kernel-name", "release": "kernel-release"}[s.Name]
		if name == "" {
			name = s.Name
		}
		want[name] = true
	}
	if len(want) == 0 {
		want["kernel-name"] = true
	}
	var out []string
	for _, f := range fields {
		if want[f.name] || want["all"] && f.value != "unknown" {
			out = append(out, f.value)
		}
	}
	fmt.Fprintln(w.Out, strings.Join(out, " "))
}

func arch(w *gnu.Work) {
	_, operands, ok := w.Options("[OPTION]...", "")
	if ok && !w.Extra(operands, 0) {
		fmt.Fprintln(w.Out, "x86_64")
	}
}

func hostname(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [NAME]", "a,alias A,all-fqdns b,boot d,domain f,fqdn ,long F,file: i,ip-address I,all-ip-addresses s,short y,yp ,nis")
	if !ok {
		return
	}
	if len(operands) > 0 {
		w.Die(1, "you must be root to change the host name")
		return
	}
	text := host
	for _, s := range sets {
		switch s.Name {
		case "alias", "domain", "all-fqdns", "all-ip-addresses":
			text = ""
		case "ip-address":
			text = "127.0.0.1"
		case "yp", "nis":
			w.Die(1, "Local domain name not set")
			return
		case "boot", "file":
			w.Die(1, "you must be root to change the host name")
			return
		}
	}
	fmt.Fprintln(w.Out, text)
}

func nproc(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]...", ",all ,ignore:")
	if !ok || w.Extra(operands, 0) {
		return
	}
	for _, s := range sets {
		if _, err := strconv.ParseUint(s.Value, 10, 64); s.Name == "ignore" && err != nil {
			w.Die(1, "invalid number: %s", gnu.Quote(s.Value))
			return
		}
	}
	fmt.Fprintln(w.Out, 1)
}

func tty(w *gnu.Work) {
	w.Usage = 2
	sets, operands, ok := w.Options("[OPTION]...", "s,silent ,quiet")
	if !ok || w.Extra(operands, 0) {
		return
	}
	name := "/dev/tty"
	if !isTerminal(w.Stdin) {
		w.Status, name = 1, "not a tty"
	}
	if len(sets) == 0 {
		fmt.Fprintln(w.Out, name)
	}
}

// clearScreen writes what clears a terminal of type ansi, as clear does when
// TERM says what it is.
func clearScreen(w *gnu.Work) {
	_, _, ok := w.Options("", "T: V x")
	if !ok {
		return
	}
	if w.Getenv("TERM") == "" || w.Getenv("TERM") == "dumb" {
		if w.Getenv("TERM") == "" {
			fmt.Fprintln(w.Stderr, "TERM environment variable not set.")
			w.Status = 1
		}
		return
	}
	fmt.Fprint(w.Out, "\x1b[H\x1b[2J\x1b[3J")
}

// tput knows a terminal of 80 by 24 that can do what all of them can.
func tput(w *gnu.Work) {
	w.Usage = 2
	sets, names, ok := w.Options("[OPTION]... CAPABILITY", "+T: S V x")
	if !ok {
		return
	}
	if len(names) == 0 {
		w.TryHelp("missing capability")
		return
	}
	term := w.Getenv("TERM")
	for _, s := range sets {
		if s.Name == "T" {
			term = s.Value
		}
	}
	switch names[0] {
	case "cols":
		fmt.Fprintln(w.Out, 80)
		return
	case "lines":
		fmt.Fprintln(w.Out, 24)
		return
	}
	if term == "" {
		w.Die(2, "No value for $TERM and no -T specified")
		return
	}
	if term == "dumb" {
		w.Status = 1
		return
	}
	caps := map[string]string{
		"clear": "\x1b[H\x1b[2J", "bold": "\x1b[1m", "sgr0": "\x1b(B\x1b[m", "smul": "\x1b[4m", "rmul": "\x1b[24m", "rev": "\x1b[7m",
		"dim": "\x1b[2m", "el": "\x1b[K", "ed": "\x1b[J", "civis": "\x1b[?25l", "cnorm": "\x1b[?12l\x1b[?25h", "bel": "\a",
		"home": "\x1b[H", "sc": "\x1b7", "rc": "\x1b8", "op": "\x1b[39;49m", "smso": "\x1b[7m", "rmso": "\x1b[27m",
	}
	n := -1
	if len(names) > 1 {
		n, _ = strconv.Atoi(names[1])
	}
	switch text, known := caps[names[0]]; {
	case known:
		fmt.Fprint(w.Out, text)
	case names[0] == "colors":
		fmt.Fprintln(w.Out, 8)
	case (names[0] == "setaf" || names[0] == "setab") && n >= 0 && n < 8:
		fmt.Fprintf(w.Out, "\x1b[%d%dm", 3+b2i(names[0] == "setab"), n)
	case names[0] == "cup" && len(names) > 2:
		col, _ := strconv.Atoi(names[2])
		fmt.Fprintf(w.Out, "\x1b[%d;%dH", n+1, col+1)
	default:
		w.Die(4, "unknown terminfo capability '%s'", names[0])
	}
}

// ps shows the one process that a session looks like from inside.
func ps(w *gnu.Work) {
	if len(w.Args) == 2 && (w.Args[1] == "--help" || w.Args[1] == "--version") {
		w.Options("[OPTION]...", "")
		return
	}
	flags := strings.Join(w.Args[1:], " ")
	switch {
	case strings.Contains(flags, "f") && strings.Contains(flags, "-"):
		fmt.Fprintln(w.Out, "UID          PID    PPID  C STIME TTY          TIME CMD")
		fmt.Fprintln(w.Out, "user           1       0  0 00:00 ?        00:00:00 bash")
	case strings.Contains(flags, "u"):
		fmt.Fprintln(w.Out, "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND")
		fmt.Fprintln(w.Out, "user           1  0.0  0.0      0     0 ?        Ss   00:00   0:00 bash")
	default:
		fmt.Fprintln(w.Out, "    PID TTY          TIME CMD")
		fmt.Fprintln(w.Out, "      1 ?        00:00:00 bash")
	}
}

func getconf(w *gnu.Work) {
	if len(w.Args) == 2 && (w.Args[1] == "--help" || w.Args[1] == "--version") {
		w.Options("VARIABLE", "")
		return
	}
	values := map[string]string{
		"ARG_MAX": "2097152", "PAGESIZE": "4096", "PAGE_SIZE": "4096", "_NPROCESSORS_ONLN": "1", "_NPROCESSORS_CONF": "1", "LONG_BIT": "64",
		"OPEN_MAX": "1024", "NAME_MAX": "255", "PATH_MAX": "4096", "INT_MAX": "2147483647", "CHAR_BIT": "8", "LINE_MAX": "2048", "PATH": "/bin:/usr/bin",
		"CLK_TCK": "100", "HOST_NAME_MAX": "64", "LOGIN_NAME_MAX": "256", "INT_MIN": "-2147483648", "UINT_MAX": "4294967295", "SSIZE_MAX": "32767", "PIPE_BUF": "4096",
	}
	if len(w.Args) < 2 || len(w.Args) > 3 {
		w.Die(2, "usage: getconf VARIABLE")
		return
	}
	v, ok := values[w.Args[1]]
	if !ok {
		_ = w.Out.Flush()
		fmt.Fprintf(w.Stderr, "getconf: Unrecognized variable `%s'\n", w.Args[1])
		w.Status = 2
		return
	}
	fmt.Fprintln(w.Out, v)
}

func which(w *gnu.Work) {
	w.Usage = 2
	sets, names, ok := w.Options("[-a] name [...]", "a,all s")
	if !ok {
		return
	}
	silent := slices.ContainsFunc(sets, func(s command.Set) bool { return s.Name == "s" })
	if len(names) == 0 {
		w.Status = 1
	}
	for _, n := range names {
		p, found := w.Find(w.Dir, n)
		if !found {
			w.Status = 1
		} else if !silent {
			fmt.Fprintln(w.Out, p)
		}
	}
}
