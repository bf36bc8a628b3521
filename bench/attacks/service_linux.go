package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/net/websocket"
)

const (
	deniedAddr  = "203.0.113.90"
	greeting    = "hello from the origin"
	touched     = "\ntouched the denied origin\n" // heard when anything connects to it
	clientPorts = "22,80,443,587,1883,5432,6379,7777"
)

// services starts at both addresses what real clients speak to: the web, registries, git, SSH, a database, a
// cache, a broker, mail, and a line of text. What reaches the denied one is heard.
func (l *laboratory) services(ctx context.Context, scratch string) error {
	cert, err := certificate("allowed.test", "denied.test")
	if err != nil {
		return err
	}
	// Root's own overlay: see private.
	if err := appendTo(systemRoots, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}))); err != nil {
		return err
	}
	repo := filepath.Join(scratch, "repo.git")
	if err := errors.Join(os.Chmod(scratch, 0o755), repositoryAt(ctx, repo), l.sshd(ctx, scratch)); err != nil { // #nosec: others clone it
		return err
	}
	site, err := site(repo)
	if err != nil {
		return err
	}
	for _, addr := range []string{allowedAddr, deniedAddr} {
		for port, serve := range map[string]func(net.Listener){
			"80": func(ln net.Listener) { web(site, ln) },
			"443": func(ln net.Listener) {
				web(site, tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}))
			},
			"587": each(mail), "1883": each(broker), "5432": each(postgres), "6379": each(redis), "7777": each(line),
		} {
			ln, err := net.Listen("tcp4", net.JoinHostPort(addr, port))
			if err != nil {
				return err
			}
			l.close = append(l.close, func() { ln.Close() })
			if addr == deniedAddr {
				ln = &canary{ln, l}
			}
			go serve(ln)
		}
	}
	return nil
}

// canary tells of connections.
type canary struct {
	net.Listener
	heard io.Writer
}

func (c *canary) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		io.WriteString(c.heard, touched) //nolint:errcheck // it is full of the same
	}
	return conn, err
}

func web(h http.Handler, ln net.Listener) {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: attemptTimeout, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	_ = srv.Serve(ln) // ends with its listener
}

// each serves one connection after the other, until one fails.
func each(serve func(net.Conn, *bufio.Reader) error) func(net.Listener) {
	return func(ln net.Listener) {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); serve(c, r) == nil; {
				}
			}()
		}
	}
}

func line(c net.Conn, _ *bufio.Reader) error {
	_, err := io.WriteString(c, greeting+"\n")
	return errors.Join(err, io.EOF)
}

// redis answers each command, an array of strings, with the greeting.
func redis(c net.Conn, r *bufio.Reader) error {
	var n, size int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return err
	}
	for range n {
		if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return err
		}
		if _, err := r.Discard(size + 2); err != nil {
			return err
		}
	}
	_, err := io.WriteString(c, "+"+greeting+"\r\n")
	return err
}

// mail greets, and is content with every command.
func mail(c net.Conn, r *bufio.Reader) error {
	if r.Buffered() == 0 {
		if _, err := io.WriteString(c, "220 origin\r\n"); err != nil {
			return err
		}
	}
	for {
		command, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		answer := "250 " + greeting + "\r\n"
		if strings.HasPrefix(strings.ToUpper(command), "QUIT") {
			answer = "221 bye\r\n"
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return err
		}
	}
}

// broker accepts an MQTT client, and hears it out.
func broker(c net.Conn, r *bufio.Reader) error {
	if _, err := r.ReadByte(); err != nil {
		return err
	}
	_, err := c.Write([]byte{0x20, 2, 0, 0}) // CONNACK
	_, copied := io.Copy(io.Discard, r)
	return errors.Join(err, copied, io.EOF)
}

// postgres lets everybody in, and answers each simple query with one row.
func postgres(c net.Conn, r *bufio.Reader) error {
	message := func(kind byte, body string) []byte {
		n := len(body) + 4
		return append([]byte{kind, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...)
	}
	const ready = "I"
	for started := false; ; {
		head := make([]byte, 4)
		kind := byte(0)
		if started {
			var err error
			if kind, err = r.ReadByte(); err != nil {
				return err
			}
		}
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		body := make([]byte, max(0, min(int(head[2])<<8+int(head[3])-4, 1<<12)))
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		var answer []byte
		switch {
		case !started && len(body) == 4: // a request for TLS or GSS
			answer = []byte("N")
		case !started:
			started = true
			answer = append(message('R', "\x00\x00\x00\x00"), message('Z', ready)...)
		case kind == 'Q':
			column := "text\x00" + "\x00\x00\x00\x00" + "\x00\x00" + "\x00\x00\x00\x19" + "\xff\xff" + "\xff\xff\xff\xff" + "\x00\x00"
			row := "\x00\x01" + "\x00\x00\x00" + string(rune(len(greeting))) + greeting
			for _, m := range [][]byte{message('T', "\x00\x01"+column), message('D', row), message('C', "SELECT 1\x00"), message('Z', ready)} {
				answer = append(answer, m...)
			}
		default:
			return io.EOF
		}
		if _, err := c.Write(answer); err != nil {
			return err
		}
	}
}

// site is the web: a page, a socket, three registries with a package each, and a repository.
func site(repo string) (http.Handler, error) {
	mux := http.NewServeMux()
	say := func(pattern, kind string, body []byte) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Write(body) //nolint:errcheck // who asked may be gone
		})
	}
	say("/hello", "text/plain", []byte(greeting+"\n"))
	mux.Handle("/repo.git/", http.StripPrefix("/repo.git", http.FileServer(http.Dir(repo))))
	mux.Handle("/ws", websocket.Server{Handler: func(c *websocket.Conn) { io.WriteString(c, greeting) }}) //nolint:errcheck // the same
	const info = "hello_egress-1.0.dist-info/"
	wheel, err := zipped("", "hello_egress.py", "text = '"+greeting+"'\n", info+"METADATA", "Metadata-Version: 2.1\nName: hello-egress\nVersion: 1.0\n",
		info+"WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info+"RECORD", "hello_egress.py,,\n"+info+"METADATA,,\n"+info+"WHEEL,,\n"+info+"RECORD,,\n")
	if err != nil {
		return nil, err
	}
	say("/simple/hello-egress/", "text/html", []byte(`<!doctype html><a href="/files/hello_egress-1.0-py3-none-any.whl">hello_egress-1.0-py3-none-any.whl</a>`))
	say("/files/hello_egress-1.0-py3-none-any.whl", "application/zip", wheel)
	mux.HandleFunc("/npm/hello-egress", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"name":"hello-egress","dist-tags":{"latest":"1.0.0"},"description":%q,"versions":{"1.0.0":{"name":"hello-egress","version":"1.0.0"}}}`, greeting)
	})
	const dir, mod = "/go/example.test/hello/@v/", "module example.test/hello\n\ngo 1.21\n"
	module, err := zipped("example.test/hello@v1.0.0/", "go.mod", mod, "hello.go", "package hello\n\nconst Text = \""+greeting+"\"\n")
	if err != nil {
		return nil, err
	}
	say(dir+"v1.0.0.info", "application/json", []byte(`{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}`))
	say(dir+"v1.0.0.mod", "text/plain", []byte(mod))
	say(dir+"v1.0.0.zip", "application/zip", module)
	return mux, nil
}

// zipped packs names and texts in turns.
func zipped(prefix string, files ...string) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i+1 < len(files); i += 2 {
		w, err := z.Create(prefix + files[i])
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

// repositoryAt makes a bare one with a commit, which plain HTTP can serve.
func repositoryAt(ctx context.Context, path string) error {
	script := `git init -q --bare -b main "$1" && cd "$1" && tree=$(git mktree </dev/null) &&
git update-ref refs/heads/main "$(git -c user.name=a -c user.email=a@example.com commit-tree -m "$2" "$tree")" && git update-server-info && chmod -R a+rX "$1"`
	text, err := exec.CommandContext(ctx, "sh", "-c", script, "sh", path, greeting).CombinedOutput()
	if err != nil {
		return fmt.Errorf("a repository: %w: %s", err, text)
	}
	return nil
}

// sshd starts a real one at both addresses, which lets root in with the key in scratch. Without one here, or
// without its name in the machine's list of users, clients of SSH are left out: their control fails.
func (l *laboratory) sshd(ctx context.Context, scratch string) error {
	daemon, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		return nil //nolint:nilerr // said above
	}
	for _, name := range []string{"host", "user"} {
		text, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(scratch, name)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ssh-keygen: %w: %s", err, text)
		}
	}
	const separation = "/run/sshd"
	if err := os.Mkdir(separation, 0o755); err == nil { // #nosec: as the service makes it
		l.close = append(l.close, func() { os.Remove(separation) })
	}
	config := filepath.Join(scratch, "sshd_config")
	text := fmt.Sprintf("HostKey %[1]s/host\nListenAddress %[2]s:22\nAuthorizedKeysFile %[1]s/user.pub\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n"+
		"KbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\nSubsystem sftp internal-sftp\n", scratch, allowedAddr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, daemon, "-D", "-e", "-f", config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	l.daemon = cmd.Process.Pid
	l.close = append(l.close, func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	// At the denied address a banner does: a client that gets it has come through.
	ln, err := net.Listen("tcp4", deniedAddr+":22")
	if err != nil {
		return err
	}
	l.close = append(l.close, func() { ln.Close() })
	go each(line)(&canary{ln, l})
	return nil
}

// get is Go's own client.
func get(url string, out io.Writer) error {
	resp, err := new(http.Client).Get(url) //nolint:noctx // the attempt has a limit
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(out, io.LimitReader(resp.Body, 4096))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return err
}
