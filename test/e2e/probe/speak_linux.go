package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"egressd/test/e2e/job"
)

// speak says the payload on an open flow and reports what came back.
func speak(c net.Conn, p job.Payload) job.Result {
	switch p.Kind {
	case "tls", "https":
		return speakTLS(c, p)
	case "http":
		host := ""
		if p.Host != "-" {
			host = "Host: " + p.Host + "\r\n"
		}
		head := method(p) + " " + path(p) + " HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n"
		if _, err := io.WriteString(c, head); err != nil {
			return fail(err)
		}
		return readHTTP(c)
	case "hello":
		return speakHello(c, p.Hello)
	case "raw":
		if _, err := c.Write(p.Raw); err != nil {
			return fail(err)
		}
		return readMarker(c)
	case "":
		return readMarker(c)
	}
	return fail(errors.New("unknown payload " + p.Kind))
}

func method(p job.Payload) string {
	if p.Method == "" {
		return "GET"
	}
	return p.Method
}

func path(p job.Payload) string {
	if p.Path == "" {
		return "/"
	}
	return p.Path
}

// speakTLS does a real handshake; a completed one means that the origin (or
// an intercepting gate) answered, so https then asks for a page.
func speakTLS(c net.Conn, p job.Payload) job.Result {
	// The canary's certificate is not the question here, the way to it is.
	conn := tls.Client(c, &tls.Config{ServerName: p.SNI, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err := conn.Handshake(); err != nil {
		return fail(fmt.Errorf("handshake: %w", err))
	}
	host := p.Host
	if host == "" {
		host = p.SNI
	}
	if _, err := io.WriteString(conn, method(p)+" "+path(p)+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); err != nil {
		return fail(err)
	}
	return readHTTP(conn)
}

// speakHello sends a hand-made ClientHello; a handshake record in return means
// that a server read it, an alert that somebody refused it.
func speakHello(c net.Conn, h job.Hello) job.Result {
	for _, piece := range pieces(clientHello(h), h.Segments) {
		if _, err := c.Write(piece); err != nil {
			return fail(err)
		}
	}
	var head [7]byte
	n, err := io.ReadAtLeast(c, head[:], 1)
	if err != nil {
		return fail(fmt.Errorf("after the hello: %w", err))
	}
	switch {
	case head[0] == 22:
		return job.Result{Reached: true, Status: -1, Text: "handshake record"}
	case head[0] == 21 && n >= 7:
		return job.Result{Status: int(head[6]), Text: "alert"}
	}
	return job.Result{Status: -1, Text: first(head[:n], n)}
}

// readHTTP reads one response.
func readHTTP(c io.Reader) job.Result {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return fail(fmt.Errorf("read the response: %w", err))
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	return job.Result{
		Reached: strings.Contains(string(body), job.Marker), Status: resp.StatusCode,
		Text: first(body, 300), Header: resp.Header.Get("Proxy-Status"),
	}
}

// readMarker reads until the canary's marker, the end, or the deadline.
func readMarker(c net.Conn) job.Result {
	_ = c.SetReadDeadline(time.Now().Add(stepTimeout)) // a failure shows in the read
	var got []byte
	buf := make([]byte, 512)
	for {
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if strings.Contains(string(got), job.Marker) {
			return job.Result{Reached: true, Status: -1, Text: first(got, 200)}
		}
		if err != nil || len(got) > 4096 {
			r := job.Result{Status: -1, Text: first(got, 200)}
			if err != nil {
				r.Err = err.Error()
			}
			return r
		}
	}
}
