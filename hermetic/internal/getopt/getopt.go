package getopt

import (
	"fmt"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

const getoptSpec = "+a,alternative l,longoptions: n,name: o,options: q,quiet Q,quiet-output s,shell: T,test u,unquoted"

// getopt is util-linux's: it puts a script's arguments in order.
func getopt(w *gnu.Work) {
	w.Usage = 2
	w.Args = append([]string{w.Args[0]}, w.Args[1:]...)
	if len(w.Args) == 1 {
		w.TryHelp("missing optstring argument")
		return
	}
	g := &getoptCall{Work: w, name: w.Args[0]}
	if !strings.HasPrefix(w.Args[1], "-") {
		g.short, g.unquoted = w.Args[1], true
		g.put(w.Args[2:])
		return
	}
	sets, operands, ok := w.Options("[options] [--] optstring parameters", getoptSpec)
	if !ok {
		return
	}
	given := false
	for _, s := range sets {
		switch s.Name {
		case "longoptions":
			g.long = append(g.long, strings.FieldsFunc(s.Value, func(r rune) bool { return strings.ContainsRune(", \t\n", r) })...)
		case "name":
			g.name = s.Value
		case "options":
			g.short, given = s.Value, true
		case "quiet":
			g.quiet = true
		case "quiet-output":
			g.silent = true
		case "unquoted":
			g.unquoted = true
		case "test":
			w.Status = 4
			return
		case "alternative":
			w.Refuse("--alternative")
			return
		}
	}
	if !given {
		if len(operands) == 0 {
			w.TryHelp("missing optstring argument")
			return
		}
		g.short, operands = operands[0], operands[1:]
	}
	g.put(operands)
}

type getoptCall struct {
	*gnu.Work
	name     string
	short    string
	long     []string
	quiet    bool
	silent   bool
	unquoted bool
}

func (g *getoptCall) known() (known []command.Option, inOrder, inPlace bool) {
	s := g.short
	if inPlace = strings.HasPrefix(s, "-"); inPlace || strings.HasPrefix(s, "+") {
		inOrder = !inPlace
		s = s[1:]
	}
	for i := 0; i < len(s); i++ {
		if s[i] == ':' {
			continue
		}
		colons := len(s[i+1:]) - len(strings.TrimLeft(s[i+1:], ":"))
		known = append(known, command.Option{Short: s[i], Takes: command.Takes(min(colons, 2))})
	}
	for _, l := range g.long {
		name := strings.TrimRight(l, ":")
		known = append(known, command.Option{Long: name, Takes: command.Takes(min(len(l)-len(name), 2))})
	}
	return known, inOrder, inPlace
}

// put reads args one at a time, so that what is wrong with one leaves the rest.
func (g *getoptCall) put(args []string) {
	known, inOrder, inPlace := g.known()
	if g.Getenv("POSIXLY_CORRECT") != "" {
		inOrder = true
	}
	var out, operands []string
	for len(args) > 0 && g.Ctx.Err() == nil {
		a := args[0]
		if a == "--" {
			operands = append(operands, args[1:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			if inOrder {
				operands = append(operands, args...)
				break
			}
			if inPlace {
				out = append(out, g.quote(a))
			} else {
				operands = append(operands, a)
			}
			args = args[1:]
			continue
		}
		var text []string
		text, args = g.one(known, args)
		out = append(out, text...)
	}
	if g.silent {
		return
	}
	out = append(out, "--")
	for _, o := range operands {
		out = append(out, g.quote(o))
	}
	fmt.Fprintln(g.Out, " "+strings.Join(out, " "))
}

// one reads the option word args[0], letter by letter.
func (g *getoptCall) one(known []command.Option, args []string) (out, rest []string) {
	word := args[0]
	for {
		call := *g.Call
		cut := word
		letters := !strings.HasPrefix(word, "--")
		if letters && len(word) > 2 && g.takes(known, word[1]) == command.Nothing {
			cut = word[:2]
		}
		call.Args = append([]string{g.name, cut}, args[1:]...)
		sets, operands, err := call.Options(known, true)
		used := 1
		if err != nil {
			if !g.quiet {
				fmt.Fprintf(g.Stderr, "%s: %v\n", g.name, err)
			}
			g.Status = 1
		} else {
			s := sets[0]
			out = append(out, g.set(known, s, letters)...)
			if s.Given && cut != "-"+s.Name+s.Value && !strings.HasSuffix(cut, "="+s.Value) {
				used = 1 + len(args[1:]) - len(operands)
				used = min(used, 2)
			}
			if s.Given && len(args) > 1 && letters && len(cut) == 2 {
				used = 2
			}
		}
		if cut == word {
			return out, args[min(used, len(args)):]
		}
		word = "-" + word[2:]
	}
}

func (g *getoptCall) takes(known []command.Option, letter byte) command.Takes {
	for _, o := range known {
		if o.Short == letter {
			return o.Takes
		}
	}
	return command.Nothing
}

func (g *getoptCall) set(known []command.Option, s command.Set, letter bool) []string {
	name, takes := "--"+s.Name, command.Nothing
	if letter {
		name = "-" + s.Name
	}
	for _, o := range known {
		if letter && string(o.Short) == s.Name || !letter && o.Long == s.Name {
			takes = o.Takes
		}
	}
	if takes == command.Nothing {
		return []string{name}
	}
	return []string{name, g.quote(s.Value)}
}

func (g *getoptCall) quote(s string) string {
	if g.unquoted {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
