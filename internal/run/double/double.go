// Package double serves the double of the Vercel Sandbox API on this machine, for
// work without the service.
//
//	err := double.Serve(double.Config{API: config, Listen: "127.0.0.1:0", Ready: show})
package double

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/signal"
	"syscall"
	"time"

	"egressd/sandbox/vercel/fake"
)

// Config is what Serve serves, and where.
type Config struct {
	API    fake.Config
	Faults []fake.Fault
	Listen string            // a loopback ADDRESS:PORT; port 0 is any
	Ready  func(addr string) // is called once it listens there
}

// headTime bounds how long a client may take to send the head of a request.
const headTime = 15 * time.Second

// Serve serves until a signal asks this process to end.
//
// Threat: somebody on the network, or a web page in this machine's browser, runs
// commands here -> it listens on loopback alone and serves whoever has the token.
// Left over: users of this machine who can read the terminal.
func Serve(c Config) error {
	at, err := netip.ParseAddrPort(c.Listen)
	if err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("--listen %s: want a loopback address with its port, such as 127.0.0.1:8787", c.Listen)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	api, err := fake.New(c.API)
	if err != nil {
		return err
	}
	for _, f := range c.Faults {
		if err := api.Inject(f); err != nil {
			return errors.Join(err, api.Close())
		}
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", at.String())
	if err != nil {
		return errors.Join(err, api.Close())
	}
	srv := &http.Server{Handler: api, ReadHeaderTimeout: headTime}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	c.Ready(ln.Addr().String())
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	closed := api.Close()
	if cerr := srv.Close(); err == nil {
		err = cerr
		<-served
	}
	return errors.Join(err, closed)
}
