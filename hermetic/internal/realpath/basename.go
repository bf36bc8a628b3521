package realpath

import (
	"strings"

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
