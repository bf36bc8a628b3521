package sed

import (
	"bytes"
	"fmt"
	"io"
)

// list is l: the pattern space without doubt what it is.
func (m *machine) list(width int) error {
	if width < 0 {
		width = m.o.lineLength
	}
	var b bytes.Buffer
	column := 0
	for _, c := range m.pattern {
		s := listed(c)
		if width > 0 && column+len(s) > width-1 {
			b.WriteString("\\\n")
			column = 0
		}
		b.WriteString(s)
		column += len(s)
	}
	b.WriteString("$\n")
	return m.out.text(b.Bytes())
}

func listed(c byte) string {
	switch c {
	case '\\':
		return `\\`
	case '\a':
		return `\a`
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	case '\v':
		return `\v`
	}
	if c < ' ' || c > '~' {
		return fmt.Sprintf(`\%03o`, c)
	}
	return string([]byte{c})
}

// eval is e: what a command of the session's own shell prints.
func (m *machine) eval(in *instruction) error {
	if len(in.text) > 0 {
		b, err := m.shell(string(in.text))
		if err != nil {
			return err
		}
		return m.out.text(b)
	}
	b, err := m.shell(string(m.pattern))
	m.pattern = bytes.TrimSuffix(b, []byte{m.delimiter()})
	return err
}

// shell runs a command line and gives what it printed.
func (m *machine) shell(line string) ([]byte, error) {
	if m.c.Exec == nil {
		return nil, fail(statusPanic, "the command e is not supported here")
	}
	if err := m.out.w.Flush(); err != nil {
		return nil, err
	}
	b := &bounded{most: int(m.c.Budget.Limits.String)}
	m.c.Exec(m.ctx, m.c.With([]string{"sh", "-c", line}, nil, b, nil))
	if b.over {
		return nil, errMemory
	}
	return b.Bytes(), m.ctx.Err()
}

// bounded keeps what is written to it, up to a bound.
type bounded struct {
	bytes.Buffer
	most int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		b.over = true
		return 0, io.ErrShortWrite
	}
	return b.Buffer.Write(p)
}
