package gzip

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"egressd/hermetic/command"
)

// ratio is how much was saved, in percent.
func ratio(saved, of int64) string {
	if of == 0 {
		return "  0.0%"
	}
	return fmt.Sprintf("%5.1f%%", 100*float64(saved)/float64(of))
}

func (p *packer) tell(name string) {
	r, err := p.OpenFile(name)
	if err != nil {
		p.fault(1, "%s: %s", name, command.Reason(err))
		return
	}
	defer r.Close()
	size, when := int64(-1), time.Time{}
	if i, err := p.FS.Stat(p.Path(name)); err == nil {
		size, when = i.Size(), i.ModTime()
	}
	p.listing(name, r, size, when)
}

// listing writes what -l tells of one file.
func (p *packer) listing(name string, r io.Reader, packed int64, when time.Time) {
	c := &tail{r: r}
	z, err := gzip.NewReader(bufio.NewReader(c))
	var plain int64
	header := int64(10)
	if err == nil {
		if z.Name != "" {
			header += int64(len(z.Name)) + 1
		}
		plain, err = io.Copy(io.Discard, p.Steady(z))
	}
	if err != nil {
		p.bad(name, err)
		return
	}
	if packed < 0 {
		packed = c.n
	}
	base := strings.TrimSuffix(name, p.suffix)
	if b, ok := strings.CutSuffix(name, ".tgz"); ok {
		base = b + ".tar"
	}
	if p.listed == 0 && !p.quiet {
		if p.verbose {
			p.Out.WriteString("method  crc     date  time  ")
		}
		p.Out.WriteString("         compressed        uncompressed  ratio uncompressed_name\n")
	}
	p.listed++
	p.sumIn, p.sumOut = p.sumIn+packed, p.sumOut+plain
	crc := uint32(0)
	if len(c.last) == 8 {
		crc = binary.LittleEndian.Uint32(c.last)
	}
	p.row(packed, plain, plain-(packed-header-8), base, crc, when)
}

func (p *packer) row(packed, plain, saved int64, name string, crc uint32, when time.Time) {
	if p.verbose && name != "(totals)" {
		fmt.Fprintf(p.Out, "defla %08x %s ", crc, when.UTC().Format("Jan _2 15:04"))
	}
	fmt.Fprintf(p.Out, "%19d %19d %s %s\n", packed, plain, ratio(saved, plain), name)
}

// tail counts what is read and keeps its last eight bytes.
type tail struct {
	r    io.Reader
	n    int64
	last []byte
}

func (t *tail) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.n += int64(n)
	t.last = append(t.last, p[:n]...)
	t.last = append([]byte(nil), t.last[max(0, len(t.last)-8):]...)
	return n, err
}
