package machine

import (
	"errors"
	"net"
	"strconv"
	"time"
)

// dialLimit is how long a server inside may take to accept.
const dialLimit = 10 * time.Second

// dial connects to a server inside and passes the connection on.
func (a *agent) dial(r request) {
	port := strconv.Itoa(int(r.Port))
	d := net.Dialer{Timeout: dialLimit}
	c, err := d.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		var err6 error
		if c, err6 = d.Dial("tcp", net.JoinHostPort("::1", port)); err6 != nil {
			a.answer(r, &Error{Kind: NoServer, Text: errors.Join(err, err6).Error()})
			return
		}
	}
	defer c.Close()
	t, ok := c.(*net.TCPConn)
	if !ok {
		a.answer(r, &Error{Kind: NoServer, Text: "not TCP"})
		return
	}
	f, err := t.File()
	if err != nil {
		a.answer(r, err)
		return
	}
	defer f.Close()
	a.answer(r, nil, f)
}
