package base64

import (
	"encoding/base64"
	"errors"
	"io"
	"strconv"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// One group of base64: bytes, and the characters that stand for them.
const (
	groupBytes = 3
	groupChars = 4
)

func inAlphabet(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '='
}

func base64Tool(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]", "d,decode D i,ignore-garbage w:,wrap:")
	if !ok {
		return
	}
	decode, garbage, wrap := false, false, int64(76)
	for _, o := range sets {
		switch o.Name {
		case "decode", "D":
			decode = true
		case "ignore-garbage":
			garbage = true
		case "wrap":
			n, err := strconv.ParseUint(o.Value, 10, 62)
			if err != nil && !errors.Is(err, strconv.ErrRange) {
				w.Die(1, "invalid wrap size: %s", gnu.Quote(o.Value))
				return
			}
			wrap = int64(n)
		}
	}
	if w.Extra(operands, 1) {
		return
	}
	name := "-"
	if len(operands) > 0 {
		name = operands[0]
	}
	r, err := w.Open(name)
	if err != nil {
		w.Die(1, "%s: %s", gnu.QuoteName(name), command.Reason(err))
		return
	}
	defer r.Close()
	if decode {
		err = decodeAll(w, r, garbage)
	} else {
		err = encodeAll(w, r, wrap)
	}
	if err != nil && w.Ctx.Err() == nil {
		if _, werr := w.Out.Write(nil); werr == nil {
			w.Die(1, "read error: %s", command.Reason(err))
		}
	}
}

func encodeAll(w *gnu.Work, r io.Reader, wrap int64) error {
	buf := make([]byte, groupBytes*4096)
	out := make([]byte, groupChars*4096)
	column := int64(0)
	for {
		n, err := io.ReadFull(r, buf)
		text := out[:(n+groupBytes-1)/groupBytes*groupChars]
		base64.StdEncoding.Encode(text, buf[:n])
		for len(text) > 0 && wrap > 0 {
			k := min(int64(len(text)), wrap-column)
			w.Out.Write(text[:k])
			text = text[k:]
			if column += k; column == wrap {
				w.Out.WriteByte('\n')
				column = 0
			}
		}
		if _, werr := w.Out.Write(text); werr != nil {
			return nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if column > 0 {
				w.Out.WriteByte('\n')
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// decodeAll decodes group by group; what comes before a mistake is written.
func decodeAll(w *gnu.Work, r io.Reader, garbage bool) error {
	group := make([]byte, 0, groupChars)
	var plain [8]byte
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			if b == '\n' || garbage && !inAlphabet(b) {
				continue
			}
			group = append(group, b)
			if len(group) < groupChars {
				continue
			}
			k, derr := base64.StdEncoding.Decode(plain[:], group)
			if derr != nil {
				partly(w, group)
				return nil
			}
			if _, werr := w.Out.Write(plain[:k]); werr != nil {
				return nil
			}
			group = group[:0]
		}
		if errors.Is(err, io.EOF) {
			if len(group) > 0 {
				partly(w, group)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// partly writes what the good beginning of a broken group says.
func partly(w *gnu.Work, group []byte) {
	for n := len(group); n > 0; n-- {
		padded := append([]byte{}, group[:n]...)
		for len(padded) < groupChars {
			padded = append(padded, '=')
		}
		var plain [8]byte
		if k, err := base64.StdEncoding.Decode(plain[:], padded); err == nil {
			w.Out.Write(plain[:k])
			break
		}
	}
	w.Die(1, "invalid input")
}
