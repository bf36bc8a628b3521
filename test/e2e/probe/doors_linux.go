package main

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"egressd/test/e2e/job"
)

// dialProxy connects to the explicit doors, as the environment names them, and
// reports the user:password that the URL carries ("" for none). from is the port to
// connect from; 0: any.
func dialProxy(from int) (net.Conn, string, error) {
	raw := os.Getenv("https_proxy")
	if raw == "" {
		return nil, "", errors.New("https_proxy is not set")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, "", err
	}
	c, err := dialer(from).Dial("tcp", u.Host)
	if err != nil {
		return nil, "", err
	}
	user := ""
	if u.User != nil {
		user = u.User.String()
	}
	return c, user, c.SetDeadline(time.Now().Add(2 * stepTimeout))
}

// dialer connects from a port; 0: from any.
func dialer(from int) *net.Dialer {
	d := &net.Dialer{Timeout: stepTimeout}
	if from != 0 {
		d.LocalAddr = &net.TCPAddr{Port: from}
	}
	return d
}

func authHeader(user string) string {
	if user == "" {
		return ""
	}
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user)) + "\r\n"
}

// doorConnect asks the HTTP proxy for a tunnel and speaks the payload in it.
func doorConnect(j job.Job) job.Result {
	c, user, err := dialProxy(j.From)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	head := j.Raw
	if head == nil {
		target := j.Host + ":" + strconv.Itoa(j.Port)
		head = []byte("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n" + authHeader(user) + "\r\n")
	}
	if _, err := c.Write(head); err != nil {
		return local(c, fail(err))
	}
	br := bufio.NewReader(c)
	resp, err := http.ReadResponse(br, &http.Request{Method: "CONNECT"})
	if err != nil {
		return local(c, fail(fmt.Errorf("read the proxy's answer: %w", err)))
	}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 2048))
		return local(c, job.Result{Status: resp.StatusCode, Text: string(body), Header: resp.Header.Get("Proxy-Status")})
	}
	later(j)
	r := speak(buffered{c, br}, j.Payload)
	if r.Status < 0 {
		r.Status = resp.StatusCode
	}
	return local(c, r)
}

// doorHTTP sends one absolute-form request, or Raw as it stands.
func doorHTTP(j job.Job) job.Result {
	c, user, err := dialProxy(j.From)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	head := j.Raw
	if head == nil {
		target := j.Host
		if j.Port != 80 {
			target += ":" + strconv.Itoa(j.Port)
		}
		host := target
		if j.Payload.Host != "" {
			host = j.Payload.Host
		}
		head = []byte(method(j.Payload) + " http://" + target + path(j.Payload) + " HTTP/1.1\r\nHost: " + host + "\r\n" + authHeader(user) + "Connection: close\r\n\r\n")
	}
	if j.Delay > 0 {
		half := len(head) - 1 // a body's last byte comes late
		if _, err := c.Write(head[:half]); err != nil {
			return local(c, fail(err))
		}
		head = head[half:]
		later(j)
	}
	if _, err := c.Write(head); err != nil {
		return local(c, fail(err))
	}
	return local(c, readHTTP(c))
}

// doorSOCKS5 asks by name (or by address, where Host is one) and speaks the payload.
func doorSOCKS5(j job.Job) job.Result {
	c, user, err := dialProxy(j.From)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	if err := socksGreet(c, user); err != nil {
		return local(c, fail(err))
	}
	req := j.Raw
	if req == nil {
		req = append([]byte{5, 1, 0}, socksAddr(j.Host)...)
		req = append(req, byte(j.Port>>8), byte(j.Port))
	}
	if _, err := c.Write(req); err != nil {
		return local(c, fail(err))
	}
	var reply [4]byte
	if _, err := io.ReadFull(c, reply[:]); err != nil {
		return local(c, fail(fmt.Errorf("read the SOCKS reply: %w", err)))
	}
	if reply[1] != 0 {
		return local(c, job.Result{Status: int(reply[1])})
	}
	rest := 4 + 2
	if reply[3] == 4 {
		rest = 16 + 2
	}
	if _, err := io.ReadFull(c, make([]byte, rest)); err != nil {
		return local(c, fail(err))
	}
	later(j)
	r := speak(c, j.Payload)
	if r.Status < 0 {
		r.Status = 0
	}
	return local(c, r)
}

func socksGreet(c net.Conn, user string) error {
	greeting := []byte{5, 1, 0}
	if user != "" {
		greeting = []byte{5, 1, 2}
	}
	if _, err := c.Write(greeting); err != nil {
		return err
	}
	var chosen [2]byte
	if _, err := io.ReadFull(c, chosen[:]); err != nil {
		return err
	}
	if chosen[1] == 0 {
		return nil
	}
	if chosen[1] != 2 {
		return fmt.Errorf("SOCKS method %d", chosen[1])
	}
	name, pass, _ := strings.Cut(user, ":")
	msg := append([]byte{1, byte(len(name))}, name...)
	msg = append(append(msg, byte(len(pass))), pass...)
	if _, err := c.Write(msg); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, chosen[:]); err != nil {
		return err
	}
	if chosen[1] != 0 {
		return errors.New("SOCKS login refused")
	}
	return nil
}

func socksAddr(host string) []byte {
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		if a.Is4() {
			return append([]byte{1}, a.AsSlice()...)
		}
		return append([]byte{4}, a.AsSlice()...)
	}
	return append([]byte{3, byte(len(host))}, host...)
}

// doorSOCKS4 asks by name (4a), or by address where Host is one.
func doorSOCKS4(j job.Job) job.Result {
	c, user, err := dialProxy(j.From)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	req := []byte{4, 1, byte(j.Port >> 8), byte(j.Port)}
	if a, err := netip.ParseAddr(j.Host); err == nil && a.Is4() {
		req = append(append(req, a.AsSlice()...), append([]byte(user), 0)...)
	} else {
		req = append(append(req, 0, 0, 0, 1), append([]byte(user), 0)...)
		req = append(append(req, j.Host...), 0)
	}
	if _, err := c.Write(req); err != nil {
		return local(c, fail(err))
	}
	var reply [8]byte
	if _, err := io.ReadFull(c, reply[:]); err != nil {
		return local(c, fail(err))
	}
	if reply[1] != 90 {
		return local(c, job.Result{Status: int(reply[1])})
	}
	return local(c, speak(c, j.Payload))
}

// doorDirect does what a program without proxy variables does: resolve, connect, speak.
func doorDirect(j job.Job) job.Result {
	addr := j.Host
	if _, err := netip.ParseAddr(j.Host); err != nil {
		q := doorDNS(job.Job{Host: j.Host, QType: 1, Via: j.Via})
		if len(q.Answers) == 0 {
			return q
		}
		addr = q.Answers[0]
	}
	c, err := dialer(j.From).Dial("tcp", net.JoinHostPort(addr, strconv.Itoa(j.Port)))
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * stepTimeout)); err != nil {
		return fail(err)
	}
	later(j)
	return local(c, speak(c, j.Payload))
}

func local(c net.Conn, r job.Result) job.Result {
	r.Local = c.LocalAddr().String()
	return r
}

// buffered is a connection whose first bytes were already read ahead.
type buffered struct {
	net.Conn
	br *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.br.Read(p) }
