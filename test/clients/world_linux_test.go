//go:build system

package clients

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
)

// Names of the world. Each has an address of its own.
const (
	webHost     = "web.test"
	gitHost     = "git.test"
	sshHost     = "ssh.test"
	pypiHost    = "pypi.test"
	npmHost     = "npm.test"
	goHost      = "goproxy.test"
	crateHost   = "crates.test"
	mavenHost   = "maven.test"
	dbHost      = "db.test"
	cacheHost   = "cache.test"
	claudeHost  = "api.anthropic.com"
	openaiHost  = "api.openai.com"
	chatgptHost = "chatgpt.com"
	deniedHost  = "denied.test"
)

// addresses are where the names live; deniedHost's is the canary's.
var addresses = map[string]string{
	webHost:     "127.10.0.1",
	gitHost:     "127.10.0.2",
	sshHost:     "127.10.0.3",
	pypiHost:    "127.10.0.4",
	npmHost:     "127.10.0.5",
	goHost:      "127.10.0.6",
	crateHost:   "127.10.0.7",
	dbHost:      "127.10.0.8",
	cacheHost:   "127.10.0.9",
	claudeHost:  "127.10.0.10",
	openaiHost:  "127.10.0.11",
	chatgptHost: "127.10.0.12",
	mavenHost:   "127.10.0.13",
	deniedHost:  "127.10.9.9",
}

// canaryPorts are where the canary waits for connections that must not come.
var canaryPorts = []string{"22", "80", "443", "5432", "6379"}

// world is everything outside the sandbox.
type world struct {
	ca      *authority
	mux     *http.ServeMux
	touched atomic.Int64 // connections and datagrams that reached the canary
	quic    atomic.Int64 // datagrams that reached web.test's UDP port 443
	closers []io.Closer
	wg      sync.WaitGroup
}

func newWorld(base string) (*world, error) {
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("ip link set lo up: %w: %s", err, out)
	}
	names := []string{webHost}
	for name := range addresses {
		if name != webHost {
			names = append(names, name)
		}
	}
	ca, err := newAuthority(base, names)
	if err != nil {
		return nil, err
	}
	w := &world{ca: ca, mux: http.NewServeMux()}
	w.routeWeb()
	w.routeModels()
	for name, addr := range addresses {
		switch name {
		case deniedHost:
			err = w.canary(addr)
		case dbHost, cacheHost, sshHost:
		default:
			err = w.serveWeb(addr)
		}
		if err != nil {
			return nil, err
		}
	}
	return w, w.countDatagrams(addresses[webHost], &w.quic)
}

// serveWeb serves the mux at ports 80 and 443 of addr, the latter with HTTP/2.
func (w *world) serveWeb(addr string) error {
	plain, err := net.Listen("tcp", addr+":80")
	if err != nil {
		return err
	}
	secure, err := net.Listen("tcp", addr+":443")
	if err != nil {
		return err
	}
	for _, ln := range []net.Listener{plain, tls.NewListener(secure, &tls.Config{
		Certificates: []tls.Certificate{w.ca.leaf}, NextProtos: []string{"h2", "http/1.1"},
	})} {
		srv := &http.Server{Handler: http.HandlerFunc(w.serveHTTP), ErrorLog: log.New(io.Discard, "", 0)}
		w.closers = append(w.closers, srv)
		w.wg.Go(func() { _ = srv.Serve(ln) }) // ends with close
	}
	return nil
}

func (w *world) serveHTTP(rw http.ResponseWriter, r *http.Request) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	r.Host = host
	w.mux.ServeHTTP(rw, r)
}

// canary counts everything that reaches addr.
func (w *world) canary(addr string) error {
	for _, port := range canaryPorts {
		ln, err := net.Listen("tcp", net.JoinHostPort(addr, port))
		if err != nil {
			return err
		}
		w.closers = append(w.closers, ln)
		w.wg.Go(func() { w.countConns(ln) })
	}
	return w.countDatagrams(addr, &w.touched)
}

func (w *world) countConns(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		w.touched.Add(1)
		_ = c.Close()
	}
}

func (w *world) countDatagrams(addr string, n *atomic.Int64) error {
	pc, err := net.ListenPacket("udp", addr+":443")
	if err != nil {
		return err
	}
	w.closers = append(w.closers, pc)
	w.wg.Go(func() {
		buf := make([]byte, 1500)
		for {
			if _, _, err := pc.ReadFrom(buf); err != nil {
				return
			}
			n.Add(1)
		}
	})
	return nil
}

func (w *world) close() {
	for _, c := range w.closers {
		_ = c.Close() // the process ends now
	}
	w.wg.Wait()
}

// hostFlags are launch's --host flags for the whole world.
func hostFlags() []string {
	var out []string
	for name, addr := range addresses {
		out = append(out, "--host", name+"="+addr)
	}
	return out
}

// url reports https://host/path.
func url(host string, path ...string) string {
	return "https://" + host + "/" + strings.Join(path, "/")
}

// fillCA puts the CA's file where a flag's value says {ca}.
func fillCA(s string) string { return strings.ReplaceAll(s, "{ca}", env.world.ca.file) }
