package verify

import (
	"errors"
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// What becomes of a connection is told apart, also when it happened before anybody
// looked.
func TestHeard(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*net.TCPConn) error
		want error
	}{
		{"reset", func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) }, unix.ECONNRESET},
		{"closed", (*net.TCPConn).CloseWrite, io.EOF},
		{"spoke", func(c *net.TCPConn) error { _, err := c.Write([]byte("x")); return err }, nil},
		{"silent", func(*net.TCPConn) error { return nil }, unix.EAGAIN},
	} {
		t.Run(c.name, func(t *testing.T) {
			ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			near, err := net.DialTCP("tcp", nil, ln.Addr().(*net.TCPAddr))
			if err != nil {
				t.Fatal(err)
			}
			defer near.Close()
			far, err := ln.AcceptTCP()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			if err := c.end(far); err != nil {
				t.Fatal(err)
			}
			if err := heard(near); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
