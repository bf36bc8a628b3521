package patch

import (
	"bytes"
	"strings"
)

// normal reads hunks of diff's default format.
func (r *patchReader) normal(p *filePatch) error {
	for {
		m := normalHead().FindStringSubmatch(r.peek(0))
		if m == nil {
			return nil
		}
		a, b := number(m[1], 0), number(m[4], 0)
		h := &patchHunk{old: a, oldLen: number(m[2], a) - a + 1, new: b, newLen: number(m[5], b) - b + 1}
		switch m[3] {
		case "a":
			h.oldLen = 0
		case "d":
			h.newLen = 0
		}
		if a < 0 || b < 0 || h.oldLen < 0 || h.newLen < 0 {
			return r.malformed()
		}
		r.at++
		if !r.marked(h, h.oldLen, '<', '-') {
			return r.malformed()
		}
		if m[3] == "c" {
			if r.peek(0) != "---" {
				return r.malformed()
			}
			r.at++
		}
		if !r.marked(h, h.newLen, '>', '+') {
			return r.malformed()
		}
		p.hunks = append(p.hunks, h)
	}
}

// marked reads n lines that begin with mark and a space.
func (r *patchReader) marked(h *patchHunk, n int, mark, op byte) bool {
	for ; n > 0; n-- {
		if r.at >= len(r.lines) {
			return false
		}
		l := r.text()
		if len(l) < 2 || l[0] != mark || l[1] != ' ' && l[1] != '\t' {
			return false
		}
		h.lines = append(h.lines, patchLine{op, l[2:]})
		r.at++
	}
	if strings.HasPrefix(r.peek(0), `\`) {
		h.unend()
		r.at++
	}
	return true
}

// contextual reads hunks of diff -c: the old lines, then the new ones, of which
// one may be left out when it has no changes.
func (r *patchReader) contextual(p *filePatch) error {
	for strings.HasPrefix(r.peek(0), "***************") {
		m := contextHead().FindStringSubmatch(r.peek(1))
		if m == nil {
			return nil
		}
		r.at += 2
		old := r.half("--- ")
		head := strings.TrimPrefix(r.peek(0), "--- ")
		from, to, _ := strings.Cut(strings.TrimSuffix(head, " ----"), ",")
		if head == r.peek(0) || !strings.HasSuffix(head, " ----") {
			return r.malformed()
		}
		r.at++
		fresh := r.half("")
		h := &patchHunk{old: number(m[1], 0), new: number(from, 0)}
		if h.old < 0 || h.new < 0 || number(to, 0) < 0 {
			return r.malformed()
		}
		if !h.merge(old, fresh) {
			return r.malformed()
		}
		p.hunks = append(p.hunks, h)
	}
	return nil
}

// half reads lines like "  a", "! b", "+ c" up to the end or a line that begins
// with stop.
func (r *patchReader) half(stop string) (all []patchLine) {
	for r.at < len(r.lines) {
		l := r.text()
		switch {
		case stop != "" && strings.HasPrefix(string(l), stop) && strings.HasSuffix(r.peek(0), " ----"):
			return all
		case l[0] == '\\' && len(all) > 0:
			last := &all[len(all)-1]
			last.text = bytes.TrimSuffix(last.text, []byte{'\n'})
		case len(l) >= 2 && strings.IndexByte(" !+-", l[0]) >= 0 && (l[1] == ' ' || l[1] == '\t'):
			all = append(all, patchLine{l[0], l[2:]})
		default:
			return all
		}
		r.at++
	}
	return all
}

// merge makes one list of both halves; false: they do not fit.
func (h *patchHunk) merge(old, fresh []patchLine) bool {
	common := func(from []patchLine) (all []patchLine) {
		for _, l := range from {
			if l.op == ' ' {
				all = append(all, l)
			}
		}
		return all
	}
	if len(old) == 0 {
		old = common(fresh)
	}
	if len(fresh) == 0 {
		fresh = common(old)
	}
	h.oldLen, h.newLen = len(old), len(fresh)
	for len(old) > 0 || len(fresh) > 0 {
		switch {
		case len(old) > 0 && old[0].op != ' ':
			h.lines = append(h.lines, patchLine{'-', old[0].text})
			old = old[1:]
		case len(fresh) > 0 && fresh[0].op != ' ':
			h.lines = append(h.lines, patchLine{'+', fresh[0].text})
			fresh = fresh[1:]
		case len(old) > 0 && len(fresh) > 0 && bytes.Equal(old[0].text, fresh[0].text):
			h.lines = append(h.lines, old[0])
			old, fresh = old[1:], fresh[1:]
		default:
			return false
		}
	}
	return true
}
