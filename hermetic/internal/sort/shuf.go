package sort

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

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
