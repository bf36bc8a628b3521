package files

import (
	"strings"
	"syscall"

	"egressd/hermetic/internal/gnu"
)

func basename(w *gnu.Work) {
	sets, names, ok := w.Options("NAME [SUFFIX]", "+a,multiple s,suffix: z,zero")
	if !ok {
		return
	}
	suffix, many, end := "", false, "\n"
	for _, s := range sets {
		switch s.Name {
		case "multiple":
			many = true
		case "suffix":
			suffix, many = s.Value, true
		case "zero":
			end = "\x00"
		}
	}
	if len(names) == 0 {
		w.TryHelp("missing operand")
		return
	}
	if !many {
		if w.Extra(names, 2) {
			return
		}
		if len(names) == 2 {
			suffix, names = names[1], names[:1]
		}
	}
	for _, n := range names {
		base := n
		if t := strings.TrimRight(n, "/"); t != "" {
			base = t[strings.LastIndexByte(t, '/')+1:]
		} else if n != "" {
			base = "/"
		}
		if cut, ok := strings.CutSuffix(base, suffix); ok && cut != "" && base != "/" {
			base = cut
		}
		_, _ = w.Out.WriteString(base + end)
	}
}

func dirname(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION] NAME...", "+z,zero")
	if !ok {
		return
	}
	if len(names) == 0 {
		w.TryHelp("missing operand")
		return
	}
	end := "\n"
	if len(sets) > 0 {
		end = "\x00"
	}
	for _, n := range names {
		_, _ = w.Out.WriteString(dirOf(n) + end)
	}
}

// dirOf is the directory of a name as dirname prints it.
func dirOf(n string) string {
	t := strings.TrimRight(n, "/")
	at := strings.LastIndexByte(t, '/')
	switch {
	case t == "" && n != "":
		return "/"
	case at < 0:
		return "."
	}
	if t = strings.TrimRight(t[:at], "/"); t == "" {
		return "/"
	}
	return t
}

// Bounds of names that POSIX promises everywhere.
const (
	portableName = 14
	portablePath = 256
	mostName     = 255
	mostPath     = 4096
)

func pathchk(w *gnu.Work) {
	sets, names, ok := w.Options("[OPTION]... NAME...", "p P ,portability")
	if !ok {
		return
	}
	if len(names) == 0 {
		w.TryHelp("missing operand")
		return
	}
	portable, extra := has(sets, "p", "portability"), has(sets, "P", "portability")
	for _, n := range names {
		checkPath(w, n, portable, extra)
	}
}

func checkPath(w *gnu.Work, name string, portable, extra bool) {
	const chars = "/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	if extra {
		for part := range strings.SplitSeq(name, "/") {
			if strings.HasPrefix(part, "-") {
				w.Fault("leading '-' in a component of file name %s", q(name))
				return
			}
		}
	}
	if name == "" {
		if portable || extra {
			w.Fault("empty file name")
		} else {
			w.Fault("%s: No such file or directory", q(name))
		}
		return
	}
	mostN, mostP := mostName, mostPath
	if portable {
		mostN, mostP = portableName, portablePath
		for _, r := range name {
			if !strings.ContainsRune(chars, r) {
				w.Fault("nonportable character %s in file name %s", gnu.Quote(string(r)), q(name))
				return
			}
		}
	} else if _, err := lstat(w, name); err == nil {
		return
	} else if !is(err, syscall.ENOENT) {
		w.Fault("%s: %s", gnu.QuoteName(name), reason(err))
		return
	}
	if len(name) >= mostP {
		w.Fault("limit %d exceeded by length %d of file name %s", mostP-1, len(name), q(name))
		return
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > mostN {
			w.Fault("limit %d exceeded by length %d of file name component %s", mostN, len(part), gnu.Quote(part))
			return
		}
	}
}
