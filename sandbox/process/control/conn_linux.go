package control

import (
	"os"

	"egressd/internal/linux/ipc"
)

// MaxBytes bounds one message: argv and environment (at most 2 MiB each), a CA
// bundle.
const MaxBytes = 16 << 20

// Conn carries messages. See [ipc.Conn] for its other methods.
type Conn struct{ ipc.Conn }

// NewConn uses the socket fd, which whoever made it closes.
func NewConn(fd int) *Conn {
	return &Conn{ipc.Conn{FD: fd, SendBytes: MaxBytes, ReceiveBytes: MaxBytes, ReceiveFiles: ipc.MaxFiles}}
}

// Send writes m and passes fds along; they stay open here. Safe for concurrent
// use.
func (c *Conn) Send(m Message, fds ...int) error { return c.Conn.Send(m.code, fds...) }

// Receive reads one message and the descriptors that came with it, which the
// caller closes. io.EOF means that the other side is gone.
func (c *Conn) Receive() (m Message, fds []*os.File, err error) {
	fds, err = c.Conn.Receive(m.code)
	return m, fds, err
}
