package od

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// hexdump is that of util-linux, with its ready-made formats.
func hexdump(w *gnu.Work) {
	sets, operands, ok := w.Options("[options] <file>...", "b,one-byte-octal c,one-byte-char C,canonical d,two-bytes-decimal o,two-bytes-octal x,two-bytes-hex e:,format: f:,format-file: L::,color:: n:,length: s:,skip: v,no-squeezing X,one-byte-hex")
	if !ok {
		return
	}
	var kinds []string
	if w.Args[0] == "hd" {
		kinds = append(kinds, "canonical")
	}
	skip, limit, verbose := int64(0), int64(-1), false
	for _, o := range sets {
		switch o.Name {
		case "format", "format-file":
			w.Refuse("--" + o.Name)
			return
		case "length", "skip":
			n, err := odNumber(o.Value)
			if err != nil {
				w.Die(1, "failed to parse %s: '%s'", o.Name, o.Value)
				return
			}
			if o.Name == "skip" {
				skip = n
			} else {
				limit = n
			}
		case "no-squeezing":
			verbose = true
		case "color":
		default:
			kinds = append(kinds, o.Name)
		}
	}
	if len(kinds) == 0 {
		kinds = []string{""}
	}
	in := newInput(w, operands, skip, limit)
	defer in.Close()
	at := skip
	var prev []byte
	starred := false
	blocks(in, 16, func(b []byte) bool {
		if !verbose && len(b) == 16 && prev != nil && bytes.Equal(b, prev) {
			if !starred {
				w.Out.WriteString("*\n")
			}
			starred = true
		} else {
			starred = false
			for _, k := range kinds {
				hexdumpLine(w, k, at, b)
			}
			prev = append(prev[:0], b...)
		}
		at += int64(len(b))
		_, err := w.Out.Write(nil)
		return err == nil
	})
	if at > skip || prev != nil {
		if kinds[0] == "canonical" {
			fmt.Fprintf(w.Out, "%08x\n", at)
		} else {
			fmt.Fprintf(w.Out, "%07x\n", at)
		}
	}
}

func hexdumpLine(w *gnu.Work, kind string, at int64, b []byte) {
	if kind == "canonical" {
		canonicalLine(w, at, b)
		return
	}
	fmt.Fprintf(w.Out, "%07x", at)
	one := map[string]string{"one-byte-octal": " %03o", "one-byte-hex": " %02x", "one-byte-char": ""}
	if verb, ok := one[kind]; ok {
		for _, c := range b {
			if kind == "one-byte-char" {
				fmt.Fprintf(w.Out, " %3s", (&odWant{}).field(odType{kind: 'c', size: 1}, []byte{c}))
			} else {
				fmt.Fprintf(w.Out, verb, c)
			}
		}
		w.Out.WriteString(strings.Repeat("    ", 16-len(b)))
		w.Out.WriteByte('\n')
		return
	}
	verb, width := " %04x", 5
	switch kind {
	case "two-bytes-decimal":
		verb, width = "   %05d", 8
	case "two-bytes-octal":
		verb, width = "  %06o", 8
	case "two-bytes-hex":
		verb, width = "    %04x", 8
	}
	padded := append(append([]byte{}, b...), 0)
	for i := 0; i < len(b); i += 2 {
		fmt.Fprintf(w.Out, verb, binary.LittleEndian.Uint16(padded[i:]))
	}
	fmt.Fprintf(w.Out, "%*s\n", width*(8-(len(b)+1)/2), "")
}

func canonicalLine(w *gnu.Work, at int64, b []byte) {
	fmt.Fprintf(w.Out, "%08x", at)
	for i := range 16 {
		if i%8 == 0 {
			w.Out.WriteByte(' ')
		}
		if i < len(b) {
			fmt.Fprintf(w.Out, " %02x", b[i])
		} else {
			w.Out.WriteString("   ")
		}
	}
	w.Out.WriteString("  |")
	for _, c := range b {
		w.Out.WriteByte(show(c))
	}
	w.Out.WriteString("|\n")
}
