package uname

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/env"
	"egressd/hermetic/internal/gnu"
)

func whoami(w *gnu.Work) {
	_, operands, ok := w.Options("", "")
	if ok && !w.Extra(operands, 0) {
		fmt.Fprintln(w.Out, env.User)
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
	kinds := gnu.One(has("user")) + gnu.One(has("group")) + gnu.One(has("groups"))
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
		text = env.UserID
		if has("name") {
			text = env.User
		}
	}
	if len(names) == 0 {
		names = []string{env.User}
	}
	for _, n := range names {
		if n != env.User && n != env.UserID {
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
		{"nodename", env.Host},
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

func hostname(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [NAME]", "a,alias A,all-fqdns b,boot d,domain f,fqdn ,long F,file: i,ip-address I,all-ip-addresses s,short y,yp ,nis")
	if !ok {
		return
	}
	if len(operands) > 0 {
		w.Die(1, "you must be root to change the host name")
		return
	}
	text := env.Host
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
