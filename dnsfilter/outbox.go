package dnsfilter

// outbox keeps the questions that one goroutine is about to send, so that many are sent
// at once. The zero outbox is empty.
type outbox struct {
	lines   []*line
	packets [][]byte
}

func (o *outbox) add(l *line, packet []byte) {
	o.lines, o.packets = append(o.lines, l), append(o.packets, packet)
}

// flush sends all of it. No lock is held: what cannot be sent fails at once.
func (o *outbox) flush() {
	for from := 0; from < len(o.lines); {
		l, to := o.lines[from], from+1
		for to < len(o.lines) && o.lines[to] == l {
			to++
		}
		if err := l.write(o.packets[from:to]); err != nil {
			l.fail(err)
		}
		from = to
	}
	clear(o.lines)
	clear(o.packets)
	o.lines, o.packets = o.lines[:0], o.packets[:0]
}

func (l *line) write(packets [][]byte) error {
	if l.many != nil {
		return l.many.Write(packets)
	}
	for _, p := range packets {
		if _, err := l.conn.Write(p); err != nil {
			return err
		}
	}
	return nil
}
