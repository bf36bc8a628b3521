package cksum

import (
	"fmt"
	"io"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// cksum is POSIX's CRC; -a chooses another algorithm, tagged.
func cksum(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "a:,algorithm: c,check ,tag ,untagged z,zero ,debug w,warn ,quiet ,status ,strict ,ignore-missing")
	if !ok {
		return
	}
	d := want{tagged: true}
	name := "crc"
	for _, o := range sets {
		switch o.Name {
		case "algorithm":
			name = o.Value
		case "untagged":
			d.tagged = false
		case "tag", "debug":
		case "zero":
			d.zero = true
		default:
			w.Refuse("--" + o.Name)
			return
		}
	}
	if name == "crc" {
		w.EachFile(operands, func(name string, r io.Reader) error {
			line, err := crcSum(r)
			if err != nil {
				return err
			}
			if len(operands) > 0 {
				line += " " + name
			}
			_, err = w.Out.WriteString(line + "\n")
			return err
		})
		return
	}
	a, ok := algorithms()[name+"sum"]
	if !ok {
		w.TryHelp("invalid argument %s for ‘--algorithm’", gnu.Quote(name))
		return
	}
	d.algorithm = a
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	for _, name := range operands {
		sum, err := d.file(w, name)
		if err != nil {
			w.Fault("%s: %s", gnu.QuoteName(name), command.Reason(err))
			continue
		}
		d.print(w, sum, name)
	}
}

// eachByte calls f with every byte of r and reports how many there are.
func eachByte(r io.Reader, f func(byte)) (int64, error) {
	buf, total := make([]byte, 64<<10), int64(0)
	for {
		n, err := r.Read(buf)
		total += int64(n)
		for _, c := range buf[:n] {
			f(c)
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// crcSum is the checksum of POSIX and the size.
func crcSum(r io.Reader) (string, error) {
	var table [256]uint32
	for i := range table {
		c := uint32(i) << 24
		for range 8 {
			if c&(1<<31) != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
		table[i] = c
	}
	crc := uint32(0)
	step := func(b byte) { crc = crc<<8 ^ table[byte(crc>>24)^b] }
	n, err := eachByte(r, step)
	for left := n; left > 0; left >>= 8 {
		step(byte(left))
	}
	return fmt.Sprintf("%d %d", ^crc, n), err
}
