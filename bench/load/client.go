package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

const patience = 20 * time.Second // for any one thing that a proxy is to do

// dial opens a connection to c's proxy port, or to target where there is no
// proxy.
func (c *contestant) dial(ctx context.Context, target string) (net.Conn, error) {
	addr := c.Addr
	if addr == "" {
		addr = target
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(patience))
}

// tunnel opens a tunnel to target.
func (c *contestant) tunnel(ctx context.Context, target string) (net.Conn, error) {
	conn, err := c.dial(ctx, target)
	if err != nil || c.Addr == "" {
		return conn, err
	}
	if err := askTunnel(conn, target); err != nil {
		_ = conn.Close() // err says more
		return nil, err
	}
	return conn, nil
}

// answered is how the error of a refusal begins.
const answered = "answered: "

// askTunnel sends a CONNECT and reads the answer. What an origin that speaks
// first has said with it is dropped.
func askTunnel(conn net.Conn, target string) error {
	if _, err := io.WriteString(conn, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n"); err != nil {
		return err
	}
	buf := make([]byte, 1024)
	for n := 0; n < len(buf); {
		k, err := conn.Read(buf[n:])
		if err != nil {
			return err
		}
		n += k
		if text := string(buf[:n]); strings.Contains(text, "\r\n\r\n") {
			if !strings.HasPrefix(text, "HTTP/1.1 200") && !strings.HasPrefix(text, "HTTP/1.0 200") {
				return errors.New(answered + text)
			}
			return nil
		}
	}
	return errors.New("the answer to CONNECT does not end")
}

// exchange sends p and waits for the origin's one byte.
func exchange(conn net.Conn, p []byte) error {
	if _, err := conn.Write(p); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

// setUp is one tunnel from connect to close, with p said inside.
func (c *contestant) setUp(ctx context.Context, target string, p []byte) error {
	conn, err := c.tunnel(ctx, target)
	if err != nil {
		return err
	}
	defer conn.Close()
	return exchange(conn, p)
}

// getter is a connection that is kept alive, for requests to target.
type getter struct {
	conn    net.Conn
	in      *bufio.Reader
	request string
}

func (c *contestant) getter(ctx context.Context, target string) (*getter, error) {
	conn, err := c.dial(ctx, target)
	if err != nil {
		return nil, err
	}
	where := "http://" + target + "/"
	if c.Addr == "" {
		where = "/"
	}
	return &getter{conn, bufio.NewReader(conn), "GET " + where + " HTTP/1.1\r\nHost: " + target + "\r\nUser-Agent: load\r\nAccept: */*\r\n\r\n"}, nil
}

func (g *getter) get() error {
	if err := g.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(g.conn, g.request); err != nil {
		return err
	}
	return readResponse(g.in)
}

// clientHello is what a TLS client without a name says first: the origin is an
// address.
func clientHello() ([]byte, error) {
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		defer client.Close()
		_ = tls.Client(client, &tls.Config{InsecureSkipVerify: true}).Handshake() // #nosec: nothing is trusted, the handshake ends with its first message
	}()
	if err := server.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	buf := make([]byte, 4096)
	n, err := server.Read(buf)
	return buf[:n], err
}
