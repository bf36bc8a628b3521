package forward

import (
	"net"
	"sync"
	"sync/atomic"
)

// originConn counts what goes over a connection to an origin: heads, framing
// and, with TLS, its records. One exchange uses it at a time.
type originConn struct {
	net.Conn
	sent, arrived atomic.Int64

	totalSent, totalArrived *atomic.Uint64
}

func (c *originConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.arrived.Add(int64(n))
	c.totalArrived.Add(uint64(n))
	return n, err
}

func (c *originConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n))
	c.totalSent.Add(uint64(n))
	return n, err
}

// CloseWrite half-closes the connection.
func (c *originConn) CloseWrite() error { return closeWriteOf(c.Conn) }

// meter is what one exchange has sent over the connections it used: more than
// one if the transport found a kept one closed and tried again.
type meter struct {
	mu             sync.Mutex
	conn           *originConn
	sent0, arrive0 int64 // of conn when the exchange got it
	sent, arrived  int64 // over earlier connections
}

// on says that the exchange goes on over c.
func (m *meter) on(c net.Conn) {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = t.NetConn()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent, m.arrived = m.sum()
	m.conn, _ = c.(*originConn)
	if m.conn != nil {
		m.sent0, m.arrive0 = m.conn.sent.Load(), m.conn.arrived.Load()
	}
}

// read reports the bytes to the origin and from it.
func (m *meter) read() (sent, arrived int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sum()
}

func (m *meter) sum() (sent, arrived int64) {
	if m.conn == nil {
		return m.sent, m.arrived
	}
	return m.sent + m.conn.sent.Load() - m.sent0, m.arrived + m.conn.arrived.Load() - m.arrive0
}
