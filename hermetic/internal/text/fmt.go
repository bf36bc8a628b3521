package text

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// filler is fmt: paragraphs broken where the ragged right edge costs least.
type filler struct {
	width, goal                    int
	crown, tagged, splitOnly, even bool
	prefix                         string
}

type fmtWord struct {
	text                   string
	space                  int  // columns after it
	final                  bool // ends a sentence
	period, punct, opening bool
	cost                   float64
	next                   int
	length                 int
	line                   int // columns of the best line that begins here
}

func fmtText(w *gnu.Work) {
	w.Args = foldDigits(w.Args, "-w")
	sets, operands, ok := w.Options("[-WIDTH] [OPTION]... [FILE]...", "c,crown-margin g:,goal: p:,prefix: s,split-only t,tagged-paragraph u,uniform-spacing w:,width:")
	if !ok {
		return
	}
	f := filler{width: 75, goal: -1}
	widthGiven := false
	for _, o := range sets {
		switch o.Name {
		case "crown-margin":
			f.crown = true
		case "split-only":
			f.splitOnly = true
		case "tagged-paragraph":
			f.tagged = true
		case "uniform-spacing":
			f.even = true
		case "prefix":
			f.prefix = o.Value
		case "width", "goal":
			n, err := strconv.ParseUint(o.Value, 10, 31)
			if err != nil || n > 2500 {
				w.Die(1, "invalid width: %s%s", gnu.Quote(o.Value), outOfRange(err == nil))
				return
			}
			if o.Name == "goal" {
				f.goal = int(n)
			} else {
				f.width, widthGiven = int(n), true
			}
		}
	}
	switch {
	case f.goal < 0:
		f.goal = f.width * 187 / 200
	case !widthGiven:
		f.width = f.goal + 10
	}
	w.EachFile(operands, func(_ string, r io.Reader) error {
		all, err := w.All(r)
		if err != nil {
			return err
		}
		f.file(w, string(bytes.TrimSuffix(all, []byte{'\n'})), len(all) > 0)
		return nil
	})
}

func (f *filler) file(w *gnu.Work, all string, any bool) {
	if !any {
		return
	}
	lines := strings.Split(all, "\n")
	for i := 0; i < len(lines) && w.Ctx.Err() == nil; {
		indent, rest, ok := f.measure(lines[i])
		if !ok {
			w.Out.WriteString(strings.TrimRight(lines[i], " \t") + "\n")
			i++
			continue
		}
		words := f.words(nil, rest)
		other := indent
		i++
		for first := true; !f.splitOnly && i < len(lines); first = false {
			in, more, ok := f.measure(lines[i])
			switch {
			case !ok:
			case first && f.crown:
				other = in
			case first && f.tagged && in != indent:
				other = in
			case first && f.tagged:
				ok = false
			case in != other:
				ok = false
			}
			if !ok {
				break
			}
			words = f.words(words, more)
			i++
		}
		if f.tagged && other == indent {
			if other = 3; indent == 3 {
				other = 0
			}
		}
		f.paragraph(w, words, indent, other)
	}
}

// measure is the indentation of a line with text; ok is false for a blank one
// or one without the prefix.
func (f *filler) measure(line string) (indent int, rest string, ok bool) {
	if f.prefix != "" {
		trimmed := strings.TrimLeft(line, " ")
		after, has := strings.CutPrefix(trimmed, strings.TrimSpace(f.prefix))
		if !has {
			return 0, "", false
		}
		line = after
	}
	for i := range len(line) {
		switch line[i] {
		case ' ':
			indent++
		case '\t':
			indent += 8 - indent%8
		default:
			return indent, line[i:], true
		}
	}
	return 0, "", false
}

func (f *filler) words(words []fmtWord, line string) []fmtWord {
	for line != "" {
		n := strings.IndexAny(line, " \t")
		if n < 0 {
			n = len(line)
		}
		t := fmtWord{text: line[:n], length: n}
		blanks := len(line[n:]) - len(strings.TrimLeft(line[n:], " \t"))
		line = line[n+blanks:]
		t.opening = strings.IndexByte("(['`\"", t.text[0]) >= 0
		end := strings.TrimRight(t.text, ")]'\"")
		t.punct = t.text[n-1] < 0x80 && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", t.text[n-1]) >= 0
		t.period = end != "" && strings.IndexByte(".?!", end[len(end)-1]) >= 0
		t.final = t.period && (line == "" || blanks > 1)
		switch {
		case line == "" || f.even:
			t.space = 1
			if t.final {
				t.space = 2
			}
		default:
			t.space = blanks
		}
		words = append(words, t)
	}
	return words
}

// paragraph chooses the breaks backwards and writes the lines.
func (f *filler) paragraph(w *gnu.Work, words []fmtWord, first, other int) {
	n := len(words)
	words[n-1].period, words[n-1].final = true, true
	words = append(words, fmtWord{})
	for start := n - 1; start >= 0; start-- {
		t := &words[start]
		indent := other
		if start == 0 {
			indent = first
		}
		length := indent + len(f.prefix) + t.length
		t.cost = math.Inf(1)
		for k := start + 1; ; k++ {
			cost := f.lineCost(words, k, n, length) + words[k].cost
			if cost < t.cost {
				t.cost, t.next, t.line = cost, k, length
			}
			if k == n {
				break
			}
			if length += words[k-1].space + words[k].length; length >= f.width {
				break
			}
		}
		t.cost += f.baseCost(words, start, n)
	}
	for at := 0; at < n; at = words[at].next {
		indent := other
		if at == 0 {
			indent = first
		}
		w.Out.WriteString(f.prefix + strings.Repeat(" ", indent))
		for k := at; k < words[at].next; k++ {
			w.Out.WriteString(words[k].text)
			if k+1 < words[at].next {
				w.Out.WriteString(strings.Repeat(" ", words[k].space))
			}
		}
		if w.Out.WriteByte('\n') != nil {
			return
		}
	}
}

func square(n float64) float64 { return n * n }

// baseCost is what breaking before word i costs by itself.
func (f *filler) baseCost(words []fmtWord, i, n int) float64 {
	cost := square(70)
	if i > 0 {
		switch before := words[i-1]; {
		case before.period && before.final:
			cost -= square(50)
		case before.period:
			cost += square(600)
		case before.punct:
			cost -= square(40)
		case i > 1 && words[i-2].final:
			cost += 200 * 200 / float64(before.length+2)
		}
	}
	switch {
	case words[i].opening:
		cost -= square(15)
	case words[i].final && i < n-1:
		cost += 150 * 150 / float64(words[i].length+2)
	}
	return cost
}

// lineCost is what a line of this length costs that ends before word next.
func (f *filler) lineCost(words []fmtWord, next, n, length int) float64 {
	if next == n {
		return 0
	}
	cost := square(10 * float64(f.goal-length))
	if words[next].next != n {
		cost += square(10*float64(length-words[next].line)) / 2
	}
	return cost
}
