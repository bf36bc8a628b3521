package control

import (
	"os"

	"egressd/internal/linux/ipc"
)

// Descriptors of the worker. 0 and 1 are the person's; 2 is where the Go runtime
// writes when it crashes, which is not the person's terminal.
const (
	FD       = 3 // the control socket
	StderrFD = 4 // the person's standard error
)

// Most bytes of one message.
const (
	toWorker   = 64 << 20 // a script, an environment, certificates
	fromWorker = 4 << 20  // a list of changes
)

// MaxChanges and maxChangeBytes bound the changes of a report.
const (
	MaxChanges     = 10_000
	MaxChangeBytes = 1 << 20
)

// Conn carries messages. See [ipc.Conn] for its other methods.
type Conn struct{ ipc.Conn }

// LauncherConn is the launcher's end over the socket fd, which whoever made it
// closes. It takes no descriptors: a worker that somebody has taken over could
// fill the launcher with them.
func LauncherConn(fd int) *Conn {
	return &Conn{ipc.Conn{FD: fd, SendBytes: toWorker, ReceiveBytes: fromWorker}}
}

// WorkerConn is the worker's end over the socket fd, which whoever made it
// closes.
func WorkerConn(fd int) *Conn {
	return &Conn{ipc.Conn{FD: fd, SendBytes: fromWorker, ReceiveBytes: toWorker, ReceiveFiles: 1}}
}

// Send writes m and passes fds along; they stay open here. Safe for concurrent
// use.
func (c *Conn) Send(m Message, fds ...int) error { return c.Conn.Send(m.code, fds...) }

// Receive reads one message and the descriptor that came with it (nil: none),
// which the caller closes. io.EOF means that the other side is gone.
func (c *Conn) Receive() (m Message, fd *os.File, err error) {
	fds, err := c.Conn.Receive(m.code)
	if len(fds) > 0 {
		fd = fds[0]
	}
	return m, fd, err
}
