package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strconv"
)

const bodyBytes = 1 << 10 // of an HTTP response

// origin is where all requests go. Every answer is as cheap as it can be: what
// it costs is in every contestant's figures.
type origin struct {
	answers net.Listener // one byte for whatever comes
	source  net.Listener // bytes without end
	http    net.Listener // bodyBytes for every request
}

func newOrigin() (_ *origin, err error) {
	o := new(origin)
	for _, l := range []struct {
		ln    *net.Listener
		serve func(net.Conn)
	}{{&o.answers, answer}, {&o.source, pour}, {&o.http, respond}} {
		if *l.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			o.close()
			return nil, err
		}
		go accept(*l.ln, l.serve)
	}
	return o, nil
}

// close stops accepting; connections end with their clients.
func (o *origin) close() {
	for _, ln := range []net.Listener{o.answers, o.source, o.http} {
		if ln != nil {
			_ = ln.Close() // nothing to lose
		}
	}
}

func accept(ln net.Listener, serve func(net.Conn)) {
	for {
		c, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}
}

func answer(c net.Conn) {
	buf := make([]byte, 2048)
	for {
		if _, err := c.Read(buf); err != nil {
			return
		}
		if _, err := c.Write([]byte("x")); err != nil {
			return
		}
	}
}

func pour(c net.Conn) {
	buf := make([]byte, 256<<10)
	for {
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

func respond(c net.Conn) {
	in := bufio.NewReader(c)
	out := append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: "+strconv.Itoa(bodyBytes)+"\r\n\r\n"), bytes.Repeat([]byte("x"), bodyBytes)...)
	for {
		if _, _, err := readHead(in); err != nil {
			return
		}
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

var errNotHTTP = errors.New("not an HTTP message")

// readHead reads a message head and reports its first line and Content-Length.
func readHead(in *bufio.Reader) (first string, length int, err error) {
	for n := 0; ; n++ {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return "", 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case n == 0:
			first = string(line)
		case len(line) == 0:
			return first, length, nil
		default:
			name, value, ok := bytes.Cut(line, []byte(":"))
			if !ok {
				return "", 0, errNotHTTP
			}
			if bytes.EqualFold(name, []byte("Content-Length")) {
				if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
					return "", 0, errNotHTTP
				}
			}
		}
	}
}

// readResponse reads one response whole; anything but 200 is an error.
func readResponse(in *bufio.Reader) error {
	first, length, err := readHead(in)
	if err != nil {
		return err
	}
	if len(first) < 12 || first[9:12] != "200" {
		return errors.New("answered: " + first)
	}
	_, err = io.CopyN(io.Discard, in, int64(length))
	return err
}
