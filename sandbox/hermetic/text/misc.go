package text

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"egressd/sandbox/hermetic/command"
	"egressd/sandbox/hermetic/gnu"
)

func yes(w *gnu.Work) {
	_, operands, ok := w.Options("[STRING]...", "")
	if !ok {
		return
	}
	line := "y\n"
	if len(operands) > 0 {
		line = strings.Join(operands, " ") + "\n"
	}
	chunk := []byte(strings.Repeat(line, max(1, 8192/len(line))))
	for w.Ctx.Err() == nil {
		if _, err := w.Out.Write(chunk); err != nil {
			return
		}
	}
}

func shuf(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]", "e,echo i:,input-range: n:,head-count: o:,output: ,random-source: r,repeat z,zero-terminated")
	if !ok {
		return
	}
	echo, span, count, repeat, end, out, source := false, "", int64(-1), false, byte('\n'), "", ""
	for _, o := range sets {
		switch o.Name {
		case "echo":
			echo = true
		case "input-range":
			span = o.Value
		case "head-count":
			n, err := strconv.ParseUint(o.Value, 10, 62)
			if err != nil {
				w.Die(1, "invalid line count: %s", gnu.Quote(o.Value))
				return
			}
			if count < 0 || int64(n) < count {
				count = int64(n)
			}
		case "output":
			out = o.Value
		case "repeat":
			repeat = true
		case "random-source":
			source = o.Value
		case "zero-terminated":
			end = 0
		}
	}
	lines, ok := shufLines(w, operands, echo, span, end)
	if !ok {
		return
	}
	if repeat && len(lines) == 0 && count != 0 {
		w.Die(1, "no lines to repeat")
		return
	}
	rng, ok := shufRandom(w, source)
	if !ok {
		return
	}
	if out != "" {
		f, err := w.Create(out, false)
		if err != nil {
			w.Die(1, "%s: %s", gnu.QuoteName(out), command.Reason(err))
			return
		}
		defer f.Close()
		defer w.Out.Flush()
		w.Out.Reset(f)
	}
	if repeat {
		for n := int64(0); (count < 0 || n < count) && w.Ctx.Err() == nil; n++ {
			w.Out.Write(lines[rng.IntN(len(lines))])
			if w.Out.WriteByte(end) != nil {
				return
			}
		}
		return
	}
	rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for i, l := range lines {
		if count >= 0 && int64(i) >= count {
			break
		}
		w.Out.Write(l)
		w.Out.WriteByte(end)
	}
}

// shufRandom is a generator, seeded by what a --random-source begins with.
func shufRandom(w *gnu.Work, source string) (*rand.Rand, bool) {
	if source == "" {
		return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), true
	}
	r, err := w.Open(source)
	var seed [32]byte
	if err == nil {
		_, _ = io.ReadFull(r, seed[:])
		_ = r.Close()
	} else {
		w.Die(1, "%s: %s", gnu.QuoteName(source), command.Reason(err))
	}
	return rand.New(rand.NewChaCha8(seed)), err == nil
}

func shufLines(w *gnu.Work, operands []string, echo bool, span string, end byte) (lines [][]byte, ok bool) {
	switch {
	case span != "" && echo:
		w.TryHelp("cannot combine -e and -i options")
		return nil, false
	case span != "":
		if w.Extra(operands, 0) {
			return nil, false
		}
		lo, hi, dash := strings.Cut(span, "-")
		a, err1 := strconv.ParseUint(lo, 10, 62)
		b, err2 := strconv.ParseUint(hi, 10, 62)
		if !dash || err1 != nil || err2 != nil || b+1 < a {
			w.Die(1, "invalid input range: %s", gnu.Quote(span))
			return nil, false
		}
		if int64(b-a)*32 > w.Most() {
			w.Die(1, "memory exhausted")
			return nil, false
		}
		for n := a; n <= b; n++ {
			lines = append(lines, strconv.AppendUint(nil, n, 10))
		}
		return lines, true
	case echo:
		for _, o := range operands {
			lines = append(lines, []byte(o))
		}
		return lines, true
	case w.Extra(operands, 1):
		return nil, false
	}
	ok = true
	w.EachFile(operands, func(_ string, r io.Reader) error {
		all, err := w.All(r)
		if len(all) > 0 {
			lines = bytes.Split(bytes.TrimSuffix(all, []byte{end}), []byte{end})
		}
		return err
	})
	return lines, w.Status == 0
}

// tsort orders items so that each pair's first comes before its second.
func tsort(w *gnu.Work) {
	_, operands, ok := w.Options("[OPTION] [FILE]", "")
	if !ok || w.Extra(operands, 1) {
		return
	}
	name := "-"
	if len(operands) > 0 {
		name = operands[0]
	}
	var all []byte
	w.EachFile(operands, func(_ string, r io.Reader) (err error) {
		all, err = w.All(r)
		return err
	})
	words := strings.FieldsFunc(string(all), func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
	if w.Status != 0 {
		return
	}
	if len(words)%2 != 0 {
		w.Die(1, "%s: input contains an odd number of tokens", gnu.QuoteName(name))
		return
	}
	g := newGraph(words)
	g.sort(w, name)
}

type node struct {
	name  string
	count int // of those that must come first
	after []*node
	done  bool
}

type graph struct{ nodes []*node }

func newGraph(words []string) *graph {
	byName := map[string]*node{}
	g := &graph{}
	find := func(name string) *node {
		n := byName[name]
		if n == nil {
			n = &node{name: name}
			byName[name] = n
			g.nodes = append(g.nodes, n)
		}
		return n
	}
	for i := 0; i < len(words); i += 2 {
		a, b := find(words[i]), find(words[i+1])
		if a != b {
			a.after = append(a.after, b)
			b.count++
		}
	}
	slices.SortFunc(g.nodes, func(x, y *node) int { return cmp.Compare(x.name, y.name) })
	return g
}

// sort writes what is free, level by level, as tsort's queue does; a loop is
// named and broken.
func (g *graph) sort(w *gnu.Work, file string) {
	left := len(g.nodes)
	for left > 0 && w.Ctx.Err() == nil {
		var queue []*node
		for _, n := range g.nodes {
			if n.count == 0 && !n.done {
				queue = append(queue, n)
			}
		}
		for len(queue) > 0 {
			n := queue[0]
			queue = queue[1:]
			n.done = true
			left--
			w.Out.WriteString(n.name + "\n")
			for _, m := range slices.Backward(n.after) {
				if m.count--; m.count == 0 {
					queue = append(queue, m)
				}
			}
		}
		if left > 0 {
			w.Fault("%s: input contains a loop:", gnu.QuoteName(file))
			g.breakLoop(w)
		}
	}
}

// breakLoop finds a loop by walking back from any node that waits.
func (g *graph) breakLoop(w *gnu.Work) {
	before := map[*node]*node{}
	for _, n := range g.nodes {
		for _, m := range n.after {
			if !n.done && before[m] == nil {
				before[m] = n
			}
		}
	}
	at := g.nodes[slices.IndexFunc(g.nodes, func(n *node) bool { return !n.done && n.count > 0 && before[n] != nil })]
	seen := map[*node]bool{}
	for !seen[at] {
		seen[at] = true
		at = before[at]
	}
	var loop []*node
	for n := at; ; n = before[n] {
		loop = append(loop, n)
		if before[n] == at {
			break
		}
	}
	for _, n := range append(loop[:1:1], reversed(loop[1:])...) {
		fmt.Fprintf(w.Stderr, "%s: %s\n", w.Args[0], n.name)
	}
	last := before[at]
	i := slices.Index(last.after, at)
	last.after = slices.Delete(last.after, i, i+1)
	at.count--
}

func reversed(nodes []*node) []*node {
	slices.Reverse(nodes)
	return nodes
}

// dosUnix is dos2unix (dos is true) and unix2dos, in place or as a filter.
func dosUnix(dos bool) func(*gnu.Work) {
	return func(w *gnu.Work) {
		sets, operands, ok := w.Options("[options] [file ...] [-n infile outfile ...]", "q,quiet k,keepdate f,force s,safe o,oldfile n,newfile l,newline")
		if !ok {
			return
		}
		quiet, fresh := false, false
		for _, o := range sets {
			quiet = quiet || o.Name == "quiet"
			fresh = fresh || o.Name == "newfile"
		}
		if len(operands) == 0 {
			b, err := w.All(w.Stdin)
			if err != nil {
				w.Fault("%s", command.Reason(err))
			}
			w.Out.Write(convertLines(b, dos))
			return
		}
		for i := 0; i < len(operands); i++ {
			in, out := operands[i], operands[i]
			if fresh && i+1 < len(operands) {
				i++
				out = operands[i]
			}
			convertFile(w, in, out, dos, quiet)
		}
	}
}

func convertLines(b []byte, dos bool) []byte {
	plain := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	if dos {
		return plain
	}
	return bytes.ReplaceAll(plain, []byte("\n"), []byte("\r\n"))
}

func convertFile(w *gnu.Work, in, out string, dos, quiet bool) {
	r, err := w.OpenFile(in)
	var b []byte
	if err == nil {
		b, err = w.All(r)
		_ = r.Close()
	}
	if err != nil {
		w.Status = 2
		w.Complain("%s: %s", in, command.Reason(err))
		return
	}
	if bytes.IndexByte(b, 0) >= 0 {
		w.Complain("Skipping binary file %s", in)
		return
	}
	f, err := w.Create(out, false)
	if err == nil {
		_, err = f.Write(convertLines(b, dos))
		_ = f.Close()
	}
	if err != nil {
		w.Status = 2
		w.Complain("%s: %s", out, command.Reason(err))
		return
	}
	if !quiet {
		w.Complain("converting file %s to %s format...", in, map[bool]string{true: "Unix", false: "DOS"}[dos])
	}
}

// iconv knows UTF-8, ISO-8859-1 and ASCII.
func iconv(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION...] [FILE...]", "f:,from-code: t:,to-code: l,list c o:,output: s,silent ,verbose")
	if !ok {
		return
	}
	from, to, drop, out := "UTF-8", "UTF-8", false, ""
	for _, o := range sets {
		switch o.Name {
		case "from-code":
			from = o.Value
		case "to-code":
			to = o.Value
		case "c":
			drop = true
		case "output":
			out = o.Value
		case "list":
			w.Out.WriteString("ASCII//\nISO-8859-1//\nUTF-8//\n")
			return
		}
	}
	to, mode, _ := strings.Cut(to, "//")
	src, ok1 := charset(from)
	dst, ok2 := charset(to)
	if !ok1 || !ok2 {
		bad := from
		if ok1 {
			bad = to
		}
		w.Die(1, "conversion from `%s' is not supported here", bad)
		return
	}
	if out != "" {
		f, err := w.Create(out, false)
		if err != nil {
			w.Die(1, "unable to open output file: %s", command.Reason(err))
			return
		}
		defer f.Close()
		defer w.Out.Flush()
		w.Out.Reset(f)
	}
	w.EachFile(operands, func(_ string, r io.Reader) error {
		all, err := w.All(r)
		if err != nil {
			return err
		}
		if at := convert(w, all, src, dst, drop || strings.Contains(mode, "IGNORE"), strings.Contains(mode, "TRANSLIT")); at >= 0 {
			w.Die(1, "illegal input sequence at position %d", at)
			return gnu.Stop()
		}
		return nil
	})
}

func charset(name string) (limit rune, ok bool) {
	switch strings.ToUpper(strings.TrimSuffix(name, "//")) {
	case "UTF-8", "UTF8", "":
		return utf8.MaxRune, true
	case "ISO-8859-1", "ISO8859-1", "LATIN1", "ISO_8859-1", "L1", "8859_1":
		return 0xff, true
	case "ASCII", "US-ASCII", "ANSI_X3.4-1968", "646":
		return 0x7f, true
	}
	return 0, false
}

// convert writes b in another charset; it reports where that fails, or -1.
func convert(w *gnu.Work, b []byte, src, dst rune, drop, translit bool) int {
	for i := 0; i < len(b); {
		r, n := rune(b[i]), 1
		bad := r > src
		if src == utf8.MaxRune {
			r, n = utf8.DecodeRune(b[i:])
			bad = r == utf8.RuneError && n == 1
		}
		switch {
		case !bad && r <= dst && dst == utf8.MaxRune:
			w.Out.WriteRune(r)
		case !bad && r <= dst:
			w.Out.WriteByte(byte(r))
		case !bad && translit:
			w.Out.WriteByte('?')
		case !drop:
			return i
		default:
			w.Status = 1
		}
		i += n
	}
	return -1
}
