package control

import "egressd/internal/linux/ipc"

// code names the kinds of message.
func (m *Message) code(c *ipc.Coder) {
	c.OneOf(
		ipc.Choice(1, &m.Config, (*Config).code),
		ipc.Choice(2, &m.Go, (*GoAhead).code),
		ipc.Choice(3, &m.Signal, (*SignalOrder).code),
		ipc.Choice(4, &m.Resume, (*ResumeOrder).code),
		ipc.Choice(5, &m.Dial, (*DialOrder).code),
		ipc.Choice(6, &m.Doors, (*DoorsReady).code),
		ipc.Choice(7, &m.Stopped, (*StopReport).code),
		ipc.Choice(8, &m.Exited, (*ExitReport).code),
		ipc.Choice(9, &m.Failed, (*FailReport).code),
		ipc.Choice(10, &m.Dialled, (*DialOutcome).code),
		ipc.Choice(11, &m.Refused, (*Refusal).code),
		ipc.Choice(12, &m.Hold, (*HoldOrder).code),
		ipc.Choice(13, &m.Held, (*HeldReport).code),
		ipc.Choice(14, &m.Terminal, (*TerminalReady).code),
	)
}

func (b *Bind) code(c *ipc.Coder) {
	c.Text(&b.Path)
	c.Text(&b.Source)
	c.Bool(&b.Dir)
	c.Bool(&b.ReadOnly)
}

func (m *GoAhead) code(c *ipc.Coder)     { c.Texts(&m.Env) }
func (m *ResumeOrder) code(c *ipc.Coder) { c.Bool(&m.Foreground) }
func (m *StopReport) code(c *ipc.Coder)  { c.Signal(&m.Sig) }
func (m *HoldOrder) code(c *ipc.Coder)   { c.Bool(&m.On) }

func (*HeldReport) code(*ipc.Coder)    {}
func (*TerminalReady) code(*ipc.Coder) {}

func (m *SignalOrder) code(c *ipc.Coder) {
	c.Signal(&m.Sig)
	c.Bool(&m.All)
}

func (m *DialOrder) code(c *ipc.Coder) {
	c.Uint64(&m.ID)
	c.Port(&m.Port)
}

func (m *DialOutcome) code(c *ipc.Coder) {
	c.Uint64(&m.ID)
	c.Text(&m.Err)
}

func (m *DoorsReady) code(c *ipc.Coder) {
	c.Text(&m.Mode)
	c.Port(&m.ProxyPort)
	c.Int(&m.Transparent)
	c.Bool(&m.Refusals)
	c.Ports(&m.Localhost)
	c.Texts(&m.Notes)
}

func (m *Refusal) code(c *ipc.Coder) {
	c.Text(&m.Call)
	c.Text(&m.Path)
}

func (m *ExitReport) code(c *ipc.Coder) {
	c.Int(&m.Code)
	c.Signal(&m.Signal)
	c.Bool(&m.NotRun)
}

func (m *FailReport) code(c *ipc.Coder) {
	c.Text(&m.Step)
	c.Text(&m.Err)
	c.Errno(&m.Errno)
}

func (m *Config) code(c *ipc.Coder) {
	c.Texts(&m.Argv)
	c.Text(&m.Path)
	c.Text(&m.Dir)
	c.Text(&m.TmpDir)
	c.Text(&m.RuntimeDir)
	c.Text(&m.Capture.Mode)
	c.Ports(&m.Capture.Ports)
	c.Ports(&m.Capture.Reserved)
	c.Ports(&m.Localhost)
	m.Plan.code(c)
	ipc.List(c, &m.Protect, func(g *Guarded) {
		c.Text(&g.File)
		c.Texts(&g.Names)
	})
	c.Bytes(&m.CA)
	c.Bool(&m.Foreground)
	c.Int(&m.Limits.Processes)
	c.Int(&m.Limits.Files)
	c.Int(&m.Limits.Disk)
	c.Bool(&m.Nested)
	c.Bool(&m.Learn)
	c.Texts(&m.Skip)
}

func (m *Plan) code(c *ipc.Coder) {
	one := func(b *Bind) { b.code(c) }
	c.Texts(&m.Roots)
	ipc.List(c, &m.Binds, one)
	ipc.List(c, &m.Shown, one)
	c.Texts(&m.Masks)
	c.Texts(&m.Hidden)
	c.Text(&m.Layer.Over)
	c.Text(&m.Layer.Upper)
	c.Text(&m.Layer.Work)
	ipc.List(c, &m.Places, func(p *Place) {
		c.Text(&p.Path)
		c.Byte((*byte)(&p.Kind))
		c.Bool(&p.Dir)
	})
	c.Text(&m.Own)
	c.Text(&m.Resolv)
	ipc.Optional(c, &m.Hosts, c.Text)
}

func (m *HandOver) code(c *ipc.Coder) {
	m.Config.code(c)
	c.Texts(&m.Env)
}

// Encode is h's wire form.
func (h *HandOver) Encode() ([]byte, error) { return ipc.Encode(nil, h.code) }

// Decode reads what Encode wrote into h, a zero value.
func (h *HandOver) Decode(b []byte) error { return ipc.Decode(b, h.code) }
