package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	rawProtocol = 253      // for experiments: RFC 3692
	hearingSize = 16 << 20 // bytes that are kept of what servers hear
	allowedAddr = "203.0.113.80"
	servers     = "127.0.0.1 203.0.113.7 203.0.113.53 203.0.113.80 203.0.113.81 203.0.113.90 169.254.169.254" // addresses on lo
)

// laboratory is the world outside: servers that remember what they hear.
type laboratory struct {
	own   bool   // a network namespace and overlays of its own
	serve bool   // what real clients speak to, instead of ports that listen only
	key   string // the file of a key that its SSH server lets in
	port  int    // of a TCP server on 127.0.0.1
	// daemon is a server's process, which outlives attempts; 0: there is none.
	daemon int
	mu     sync.Mutex
	heap   []byte
	close  []func()
}

func (l *laboratory) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.heap) > hearingSize {
		return 0, errors.New("too much was sent")
	}
	l.heap = append(l.heap, p...)
	return len(p), nil
}

// heard reports whether a server got text.
func (l *laboratory) heard(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.heap, []byte(text))
}

// forget empties what was heard.
func (l *laboratory) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heap = nil
}

func (l *laboratory) shut() {
	for _, c := range l.close {
		c()
	}
}

// hear reads r to its end.
func (l *laboratory) hear(r interface{ Read([]byte) (int, error) }) {
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		if _, werr := l.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// accept hears every connection, and says answer at its start.
func (l *laboratory) accept(ln net.Listener, answer string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if _, err := c.Write([]byte(answer)); err == nil {
				l.hear(c)
			}
		}()
	}
}

// hearPackets hears datagrams; answer, unless nil, makes a reply.
func (l *laboratory) hearPackets(c net.PacketConn, answer func([]byte) []byte) {
	buf := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		l.Write(buf[:n]) //nolint:errcheck // it is full: nothing is heard any more
		if answer == nil {
			continue
		}
		if reply := answer(buf[:n]); reply != nil {
			c.WriteTo(reply, from) //nolint:errcheck // who asked may be gone
		}
	}
}

// open starts the servers. In a namespace of its own it first gives lo the addresses,
// and covers what root could change with overlays.
func (l *laboratory) open(ctx context.Context, scratch string) error {
	if l.own {
		if err := errors.Join(private(scratch), addresses()); err != nil {
			return err
		}
	}
	tcp := []string{"127.0.0.1:0"}
	var udp []string
	if l.own {
		tcp = append(tcp, "203.0.113.7:8080", "169.254.169.254:80")
		if !l.serve {
			tcp = append(tcp, allowedAddr+":80", allowedAddr+":443", allowedAddr+":22")
		}
		udp = append(udp, "203.0.113.7:9999")
	}
	for i, addr := range tcp {
		ln, err := net.Listen("tcp4", addr)
		if err != nil {
			return err
		}
		if i == 0 {
			l.port = ln.Addr().(*net.TCPAddr).Port
		}
		l.close = append(l.close, func() { ln.Close() })
		go l.accept(ln, "")
	}
	for _, addr := range udp {
		if err := l.packets("udp4", addr, nil); err != nil {
			return err
		}
	}
	if !l.own {
		return nil
	}
	if l.serve {
		l.key = filepath.Join(scratch, "user")
		if err := l.services(ctx, scratch); err != nil {
			return err
		}
	}
	return errors.Join(
		l.echo(),
		l.packets("udp4", "203.0.113.53:53", l.resolve),
		l.packets(fmt.Sprintf("ip4:%d", rawProtocol), "203.0.113.7", nil),
	)
}

func (l *laboratory) packets(network, addr string, answer func([]byte) []byte) error {
	c, err := net.ListenPacket(network, addr)
	if err != nil {
		return err
	}
	l.close = append(l.close, func() { c.Close() })
	go l.hearPackets(c, answer)
	return nil
}

// resolve is the name server: four names, and a record of all that it was asked.
func (l *laboratory) resolve(query []byte) []byte {
	const head, address = 12, 1 // octets of a head; type A
	var labels []string
	at := head
	for at < len(query) && query[at] != 0 {
		end := at + 1 + int(query[at])
		if end > len(query) {
			return nil
		}
		labels = append(labels, string(query[at+1:end]))
		at = end
	}
	end := at + 5 // the root label, type, class
	if end > len(query) {
		return nil
	}
	name := strings.ToLower(strings.Join(labels, "."))
	fmt.Fprintf(l, "\nquery %s\n", name)
	reply := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[head:end]...)
	ip, found := map[string][]byte{"allowed.test": {203, 0, 113, 80}, "echo.test": {203, 0, 113, 81}, "denied.test": {203, 0, 113, 90}, "rebind.test": {169, 254, 169, 254}}[name]
	switch {
	case !found:
		reply[3] |= 3 // there is no such name
	case query[end-3] == address:
		reply[7] = 1
		reply = append(append(reply, 0xc0, head, 0, address, 0, 1, 0, 0, 0, 1, 0, 4), ip...)
	}
	return reply
}

// private covers what root's attacks write, in a mount namespace of this process alone.
func private(scratch string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("scratch", scratch, "tmpfs", 0, "mode=0755"); err != nil {
		return err
	}
	for _, dir := range []string{"/etc", "/usr/local", "/root"} {
		below := filepath.Join(scratch, filepath.Base(dir))
		upper, work := below+"-upper", below+"-work"
		if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)); err != nil {
			return err
		}
		if info, err := os.Stat(dir); err == nil {
			if err := os.Chmod(upper, info.Mode().Perm()); err != nil {
				return err
			}
		}
		data := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work)
		if err := unix.Mount("overlay", dir, "overlay", 0, data); err != nil {
			return fmt.Errorf("overlay over %s: %w", dir, err)
		}
	}
	return errors.Join(
		os.Remove("/etc/resolv.conf"),
		os.WriteFile("/etc/resolv.conf", []byte("nameserver 203.0.113.53\noptions timeout:1 attempts:1\n"), 0o644),
		os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"), 0o644),
	)
}

// addresses gives the loopback device the laboratory's.
func addresses() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for i, a := range bytes.Fields([]byte(servers)) {
		name := "lo"
		if i > 0 {
			name = fmt.Sprintf("lo:%d", i)
		}
		r, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if i > 0 {
			if err := errors.Join(r.SetInet4Addr(net.ParseIP(string(a)).To4()), unix.IoctlIfreq(fd, unix.SIOCSIFADDR, r)); err != nil {
				return fmt.Errorf("address %s: %w", a, err)
			}
		}
		r.SetUint16(unix.IFF_UP)
		if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
			return err
		}
	}
	return nil
}
