package control

import "egressd/internal/linux/ipc"

// code names the kinds of message.
func (m *Message) code(c *ipc.Coder) {
	c.OneOf(
		ipc.Choice(1, &m.Bounds, (*Bounds).code),
		ipc.Choice(2, &m.Start, (*Start).code),
		ipc.Choice(3, &m.Stop, (*StopOrder).code),
		ipc.Choice(4, &m.Dialled, (*DialOutcome).code),
		ipc.Choice(5, &m.Dial, (*DialOrder).code),
		ipc.Choice(6, &m.Ended, (*EndReport).code),
		ipc.Choice(7, &m.Failed, (*FailReport).code),
	)
}

func (m *Bounds) code(c *ipc.Coder) {
	c.Uint64(&m.Data)
	c.Uint64(&m.Address)
	c.Uint64(&m.File)
	c.Uint64(&m.Files)
	c.Uint64(&m.CPU)
	c.Texts(&m.Skip)
}

func (m *Start) code(c *ipc.Coder) {
	c.Text(&m.Script)
	c.Text(&m.Name)
	c.Texts(&m.Args)
	c.Texts(&m.Options)
	c.Text(&m.Dir)
	c.Texts(&m.Env)
	for _, f := range m.Limits.Fields() {
		*f.Value = int64(c.Number(uint64(*f.Value)))
	}
	c.Bool(&m.Overlay)
	c.Texts(&m.Protect)
	c.Bool(&m.Network)
	c.Bytes(&m.Roots)
}

func (m *StopOrder) code(*ipc.Coder) {}

func (m *DialOrder) code(c *ipc.Coder) { c.Uint64(&m.ID) }

func (m *DialOutcome) code(c *ipc.Coder) {
	c.Uint64(&m.ID)
	c.Text(&m.Err)
}

func (m *EndReport) code(c *ipc.Coder) {
	c.Int(&m.Code)
	c.Text(&m.Limit)
	ipc.List(c, &m.Changes, func(ch *Change) {
		c.Byte(&ch.Kind)
		c.Text(&ch.Path)
	})
	c.Int(&m.Total)
}

func (m *FailReport) code(c *ipc.Coder) {
	c.Text(&m.Step)
	c.Text(&m.Err)
	c.Errno(&m.Errno)
}
