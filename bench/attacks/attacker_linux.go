package main

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// attackerName is this program's name inside. It is the attacker when it is called so.
const attackerName = "attacker"

const tryTimeout = 2 * time.Second

// attackMain does one thing and prints what it got. Whether it succeeded is judged outside.
func attackMain(args []string, stdout io.Writer) int {
	verbs := map[string]func(a []string, out io.Writer) error{
		"unix":           func(a []string, out io.Writer) error { return say("unix", a[0], a[1], out) },
		"unixgram":       func(a []string, out io.Writer) error { return sendTo(a[0], a[1]) },
		"fifo":           func(a []string, _ io.Writer) error { return writeFIFO(a[0], a[1]) },
		"tcp":            func(a []string, out io.Writer) error { return say("tcp", a[0], a[1], out) },
		"udp":            func(a []string, out io.Writer) error { return say("udp", a[0], a[1], out) },
		"raw":            func(a []string, _ io.Writer) error { return sendRaw(a[0], a[1]) },
		"dns":            func(a []string, _ io.Writer) error { return ask(a[0], a[1]) },
		"lookup":         func(a []string, _ io.Writer) error { return lookup(a[0]) },
		"via":            func(a []string, out io.Writer) error { return via(a[0], a[1], a[2], out) },
		"sni":            func(a []string, _ io.Writer) error { return hello(a[0], a[1], a[2]) },
		"host":           func(a []string, out io.Writer) error { return otherHost(a[0], a[1], a[2], out) },
		"ask":            func(a []string, out io.Writer) error { return askWith(a[0], a[1], a[2], a[3], out) },
		"get":            func(a []string, out io.Writer) error { return get(a[0], out) },
		"uncover":        uncoverAgain,
		"uncover-inside": uncover,
		"ptrace":         tracePid,
		"memory-of":      memoryOf,
		"grow":           grow,
		"tiocsti":        func(a []string, _ io.Writer) error { return push(a[0]) },
	}
	if len(args) == 0 || verbs[args[0]] == nil {
		fmt.Fprintln(stdout, "attacker: unknown attack", args)
		return 2
	}
	if err := verbs[args[0]](args[1:], stdout); err != nil {
		fmt.Fprintln(stdout, args[0], err)
		return 1
	}
	return 0
}

// say connects, sends text and prints what comes back.
func say(network, addr, text string, out io.Writer) error {
	c, err := net.DialTimeout(network, addr, tryTimeout)
	if err != nil {
		return err
	}
	return talk(c, text+"\n", out)
}

func talk(c net.Conn, text string, out io.Writer) error {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(tryTimeout / 4)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	_, err := io.Copy(out, io.LimitReader(c, 4096))
	return err
}

// sendTo sends a datagram with an address, not on a connection.
func sendTo(path, text string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte(text), 0, &unix.SockaddrUnix{Name: path})
}

func writeFIFO(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&os.ModeNamedPipe == 0 {
		err = errors.New("it is no FIFO here")
	}
	if err == nil {
		_, err = f.WriteString(text + "\n")
	}
	return errors.Join(err, f.Close())
}

func sendRaw(addr, text string) error {
	c, err := net.DialTimeout(fmt.Sprintf("ip4:%d", rawProtocol), addr, tryTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.WriteString(c, text)
	return err
}

// ask sends a DNS question of its own making.
func ask(server, name string) error {
	msg := []byte{0x17, 0x17, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, label := range strings.Split(name, ".") {
		msg = append(append(msg, byte(len(label))), label...)
	}
	msg = append(msg, 0, 0, 1, 0, 1)
	c, err := net.DialTimeout("udp", server, tryTimeout)
	if err != nil {
		return err
	}
	return talk(c, string(msg), io.Discard)
}

// lookup asks the system's resolver, by way of a connection that never comes to be.
func lookup(name string) error {
	c, err := net.DialTimeout("tcp", net.JoinHostPort(name, "80"), tryTimeout)
	if err == nil {
		c.Close()
	}
	return err
}

// tunnel is a connection to target: through the proxy, or directly where there is none.
func tunnel(proxy, target string) (net.Conn, error) {
	if proxy == "" {
		return net.DialTimeout("tcp", target, tryTimeout)
	}
	u, err := url.Parse(proxy)
	if err != nil {
		return nil, err
	}
	c, err := net.DialTimeout("tcp", u.Host, tryTimeout)
	if err != nil {
		return nil, err
	}
	head := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	if u.User != nil {
		password, _ := u.User.Password()
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\r\n"
	}
	if _, err = io.WriteString(c, head+"\r\n"); err == nil {
		err = c.SetReadDeadline(time.Now().Add(tryTimeout))
	}
	var answer []byte
	for one := make([]byte, 1); err == nil && len(answer) < 4096 && !strings.HasSuffix(string(answer), "\r\n\r\n"); {
		_, err = io.ReadFull(c, one) // one by one: what follows is not the proxy's
		answer = append(answer, one...)
	}
	if status := strings.Fields(string(answer)); err == nil && (len(status) < 2 || status[1] != "200") {
		err = fmt.Errorf("the proxy says %q", answer)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, c.SetReadDeadline(time.Time{})
}

// via sends text through a tunnel, and then the same to the address itself, which is a
// way of its own where the sandbox captures connections.
func via(proxy, target, text string, out io.Writer) error {
	var errs []error
	for _, p := range []string{proxy, ""} {
		c, err := tunnel(p, target)
		if err == nil {
			err = talk(c, text+"\n", out)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hello sends a ClientHello with another name.
func hello(proxy, target, name string) error {
	var errs []error
	for _, p := range []string{proxy, ""} {
		c, err := tunnel(p, target)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		err = c.SetDeadline(time.Now().Add(tryTimeout / 4))
		errs = append(errs, err, tls.Client(c, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}).Handshake())
		c.Close()
	}
	return errors.Join(errs...)
}

// otherHost asks the proxy for a page of one host with the Host field of another, in a
// tunnel, in the absolute form, and directly.
func otherHost(proxy, host, other string, out io.Writer) error {
	request := " HTTP/1.1\r\nHost: " + other + "\r\nConnection: close\r\n\r\n"
	var errs []error
	for _, p := range []string{proxy, ""} {
		c, err := tunnel(p, host+":80")
		if err == nil {
			err = talk(c, "GET /"+request, out)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// grow touches megabytes, says that it has, and waits a little.
func grow(args []string, out io.Writer) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	data := make([]byte, n<<20)
	for i := 0; i < len(data); i += 4096 {
		data[i] = 1
	}
	fmt.Fprintln(out, "READY")
	<-time.After(tryTimeout)
	fmt.Fprintln(out, data[len(data)-1])
	return nil
}
