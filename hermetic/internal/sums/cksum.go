package sums

import (
	"fmt"
	"io"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// cksum is POSIX's CRC; -a chooses another algorithm, tagged.
func cksum(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "a:,algorithm: c,check ,tag ,untagged z,zero l:,length: ,debug w,warn ,quiet ,status ,strict ,ignore-missing")
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
	switch name {
	case "crc":
		eachSum(w, operands, crcSum)
		return
	case "bsd":
		eachSum(w, operands, bsdSum)
		return
	case "sysv":
		eachSum(w, operands, sysvSum)
		return
	}
	tool := map[string]string{"blake2b": "b2sum"}[name]
	if tool == "" {
		tool = name + "sum"
	}
	a, ok := algorithms()[tool]
	if !ok || name == "b2" {
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

func sum(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... [FILE]...", "r s,sysv")
	if !ok {
		return
	}
	of := bsdSum
	for _, o := range sets {
		of = bsdSum
		if o.Name == "sysv" {
			of = sysvSum
		}
	}
	eachSum(w, operands, of)
}

// summer reads a file and makes its line; several says whether there are more.
type summer func(r io.Reader, name string, several bool) (string, error)

func eachSum(w *gnu.Work, operands []string, of summer) {
	several, named := len(operands) > 1, len(operands) > 0
	w.EachFile(operands, func(name string, r io.Reader) error {
		if !named {
			name = ""
		}
		line, err := of(r, name, several)
		if err != nil {
			return err
		}
		_, err = w.Out.WriteString(line + "\n")
		return err
	})
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

func named(line, name string) string {
	if name == "" {
		return line
	}
	return line + " " + name
}

func crcSum(r io.Reader, name string, _ bool) (string, error) {
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
	return named(fmt.Sprintf("%d %d", ^crc, n), name), err
}

func bsdSum(r io.Reader, name string, several bool) (string, error) {
	sum := uint32(0)
	n, err := eachByte(r, func(b byte) { sum = (sum>>1 + sum&1<<15 + uint32(b)) & 0xffff })
	line := fmt.Sprintf("%05d %5d", sum, (n+1023)/1024)
	if several || name != "" && name != "-" {
		line = named(line, name)
	}
	return line, err
}

func sysvSum(r io.Reader, name string, _ bool) (string, error) {
	s := uint32(0)
	n, err := eachByte(r, func(b byte) { s += uint32(b) })
	s = s&0xffff + s>>16
	s = s&0xffff + s>>16
	return named(fmt.Sprintf("%d %d", s, (n+511)/512), name), err
}
