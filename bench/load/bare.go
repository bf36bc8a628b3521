package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
)

// bare is this program as a CONNECT proxy that decides, bounds and records
// nothing: what a gate in Go costs above it is what gating costs.
func bare(p *place) (*exec.Cmd, error) {
	self, err := os.Executable()
	return exec.Command(self, bareFlag, net.JoinHostPort("127.0.0.1", p.port)), err
}

const bareFlag = "-serve-bare"

// serveBare is the process of bare. It ends with its listener.
func serveBare(ctx context.Context, addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	accept(ln, new(relay).serve)
	return nil
}

// relay is the least that a tunnel takes.
type relay struct{ heads sync.Pool } // of *[32 << 10]byte

func (r *relay) serve(client net.Conn) {
	buf, ok := r.heads.Get().(*[32 << 10]byte)
	if !ok {
		buf = new([32 << 10]byte)
	}
	defer r.heads.Put(buf)
	n, err := client.Read(buf[:])
	words := bytes.Fields(buf[:n])
	if err != nil || len(words) < 2 || string(words[0]) != "CONNECT" {
		return
	}
	up, err := new(net.Dialer).DialContext(context.Background(), "tcp", string(words[1]))
	if err != nil {
		return
	}
	defer up.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = carry(client, up) })
	_ = carry(up, client)
	wg.Wait()
}

// carry copies src to dst and passes its end on.
func carry(dst, src net.Conn) error {
	_, err := io.Copy(dst, src) // splices, with a pipe for as long as it lasts
	return errors.Join(err, dst.(*net.TCPConn).CloseWrite())
}
