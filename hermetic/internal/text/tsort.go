package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"egressd/hermetic/internal/gnu"
)

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
