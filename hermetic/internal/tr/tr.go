package tr

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

type trWant struct{ complement, delete, squeeze, truncate bool }

func tr(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... STRING1 [STRING2]", "+c,complement C d,delete s,squeeze-repeats t,truncate-set1")
	if !ok {
		return
	}
	var t trWant
	for _, o := range sets {
		switch o.Name {
		case "complement", "C":
			t.complement = true
		case "delete":
			t.delete = true
		case "squeeze-repeats":
			t.squeeze = true
		case "truncate-set1":
			t.truncate = true
		}
	}
	if !t.operands(w, operands) {
		return
	}
	one, err := parseTrSet(w, operands[0])
	if err != nil {
		w.Die(1, "%s", err)
		return
	}
	var two *trSet
	if len(operands) == 2 {
		if two, err = parseTrSet(w, operands[1]); err != nil {
			w.Die(1, "%s", err)
			return
		}
	}
	m, err := t.machine(one, two)
	if err != nil {
		w.Die(1, "%s", err)
		return
	}
	m.run(w)
}

// operands checks how many there are for what is asked.
func (t trWant) operands(w *gnu.Work, operands []string) bool {
	translating := !t.delete && !t.squeeze
	least, most := 2, 2
	if t.delete != t.squeeze {
		least = 1
	}
	if t.delete && !t.squeeze {
		most = 1
	}
	why := ""
	switch {
	case len(operands) == 0:
		w.TryHelp("missing operand")
		return false
	case len(operands) < least:
		why = "Two strings must be given when translating."
		if !translating {
			why = "Two strings must be given when both deleting and squeezing repeats."
		}
		why = fmt.Sprintf("missing operand after %s\n%s", gnu.Quote(operands[len(operands)-1]), why)
	case len(operands) > most:
		why = "extra operand " + gnu.Quote(operands[most])
		if len(operands) == 2 {
			why += "\nOnly one string may be given when deleting without squeezing repeats."
		}
	default:
		return true
	}
	w.TryHelp("%s", why)
	return false
}

// trMachine is what tr does to each byte.
type trMachine struct {
	to      [256]byte
	drop    [256]bool
	squeeze [256]bool
}

func (t trWant) machine(one, two *trSet) (*trMachine, error) {
	m := &trMachine{}
	for i := range m.to {
		m.to[i] = byte(i)
	}
	if one.indefinite {
		return nil, errors.New("the [c*] repeat construct may not appear in string1")
	}
	bytes1 := one.expand()
	if t.complement {
		bytes1 = complementBytes(bytes1)
	}
	translating := two != nil && !t.delete
	if two != nil && two.indefinite && (two.stars > 1) {
		return nil, errors.New("only one [c*] repeat construct may appear in string2")
	}
	if !translating && two != nil && two.indefinite {
		return nil, errors.New("the [c*] construct may appear in string2 only when translating")
	}
	switch {
	case t.delete:
		for _, c := range bytes1 {
			m.drop[c] = true
		}
	case !translating:
		for _, c := range bytes1 {
			m.squeeze[c] = true
		}
		return m, nil
	default:
		if err := t.translate(m, one, two, bytes1); err != nil {
			return nil, err
		}
	}
	if t.squeeze {
		for _, c := range two.expand() {
			m.squeeze[c] = true
		}
	}
	return m, nil
}

// translate fills in what each byte becomes.
func (t trWant) translate(m *trMachine, one, two *trSet, bytes1 []byte) error {
	switch {
	case two.equivalence:
		return errors.New("[=c=] expressions may not appear in string2 when translating")
	case two.class != "" && two.class != "upper" && two.class != "lower":
		return errors.New("when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'")
	}
	two.fill(len(bytes1))
	bytes2 := two.expand()
	if len(bytes2) == 0 && !t.truncate && len(bytes1) > 0 {
		return errors.New("when not truncating set1, string2 must be non-empty")
	}
	if err := t.aligned(one, two); err != nil {
		return err
	}
	if t.complement && one.class != "" && !(len(bytes2) == 256 || same(bytes2)) {
		return errors.New("when translating with complemented character classes,\nstring2 must map all characters in the domain to one")
	}
	if two.endsInClass() && len(bytes2) < len(bytes1) && !t.truncate {
		return errors.New("when translating with string1 longer than string2,\nthe latter string must not end with a character class")
	}
	for i, c := range bytes1 {
		switch {
		case i < len(bytes2):
			m.to[c] = bytes2[i]
		case !t.truncate:
			m.to[c] = bytes2[len(bytes2)-1]
		}
	}
	return nil
}

// aligned checks that a class of case in string2 stands opposite one.
func (t trWant) aligned(one, two *trSet) error {
	err := errors.New("misaligned [:upper:] and/or [:lower:] construct")
	if two.class == "" {
		return nil
	}
	if t.complement {
		return nil
	}
	at2 := 0
	for _, p := range two.parts {
		if p.class != "" {
			at1, found := 0, false
			for _, q := range one.parts {
				found = found || at1 == at2 && (q.class == "upper" || q.class == "lower")
				at1 += len(q.bytes)
			}
			if !found {
				return err
			}
		}
		at2 += len(p.bytes)
	}
	return nil
}

func same(b []byte) bool {
	for _, c := range b {
		if c != b[0] {
			return false
		}
	}
	return true
}

func complementBytes(b []byte) []byte {
	var out []byte
	for c := range 256 {
		if !slices.Contains(b, byte(c)) {
			out = append(out, byte(c))
		}
	}
	return out
}

func (m *trMachine) run(w *gnu.Work) {
	in, _ := w.Open("-")
	buf, last := make([]byte, 32<<10), -1
	for {
		n, err := in.Read(buf)
		out := buf[:0]
		for _, c := range buf[:n] {
			if m.drop[c] {
				continue
			}
			if c = m.to[c]; m.squeeze[c] && last == int(c) {
				continue
			}
			last = int(c)
			out = append(out, c)
		}
		if _, werr := w.Out.Write(out); werr != nil {
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && w.Ctx.Err() == nil {
				w.Fault("read error: %s", command.Reason(err))
			}
			return
		}
		if n < len(buf) && w.Out.Flush() != nil {
			return
		}
	}
}
