// Package advisory runs a program on the machine as it is, with proxy variables
// that point at a gate on the loopback:
//
//	b := &advisory.Backend{Gate: gate.Config{Policy: policy, Events: events}}
//	res, err := b.Run(ctx, sandbox.Spec{Argv: []string{"make"}, Env: env})
//
// It is for systems without namespaces. A program that ignores the variables is
// not stopped, so every event says "advisory".
package advisory

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"egressd/gate"
	"egressd/sandbox"
)

// isolation names this tier in events and errors.
const isolation = "advisory"

// Backend is the advisory tier. Set the fields before the first Run; runs may be
// concurrent.
//
// Threat: while a run lasts, another process of this machine finds the port and
// uses the gate, since the proxy has no password -> it is judged by the same
// policy and in the same record. Left over: what the policy allows is open to
// everybody on this machine meanwhile.
type Backend struct {
	// Gate is what judges and records the program's flows. Its Isolation is this
	// tier's to set.
	Gate gate.Config
}

// Isolation reports "advisory".
func (b *Backend) Isolation() string { return isolation }

// Supports reports a *sandbox.CapabilityError for a spec without a command: every
// system can set variables.
func (b *Backend) Supports(spec sandbox.Spec) error {
	if _, err := spec.CommandLine(); err != nil {
		return &sandbox.CapabilityError{Isolation: isolation, What: err.Error()}
	}
	return nil
}

// Run runs spec and reports how it ended. The signals HUP, INT, QUIT, TERM, USR1
// and USR2 that this process gets are forwarded to the program. When ctx ends, the
// program is ended as after a timeout. An error means that nothing ran.
func (b *Backend) Run(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	res := sandbox.Result{ExitCode: sandbox.ExitLauncher, Started: time.Now()}
	err := b.Supports(spec)
	if err == nil {
		err = b.run(ctx, spec, &res)
	}
	res.Ended = time.Now()
	return res, err
}

func (b *Backend) run(ctx context.Context, spec sandbox.Spec, res *sandbox.Result) error {
	c := b.Gate
	c.Isolation = isolation
	g, err := gate.New(c)
	if err != nil {
		return err
	}
	env := sandbox.PlaceholderEnv(spec.Env, c.Policy, c.SecretValue)
	if bundle := g.Bundle(); bundle != nil {
		path, err := writeBundle(bundle)
		if err != nil {
			return err
		}
		defer os.RemoveAll(filepath.Dir(path))
		env = sandbox.TrustEnv(env, path)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil {
		ln.Close()
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { _ = g.Serve(serving, gate.Doors{Explicit: []net.Listener{ln}}) }) // a door that closes early is logged
	spec.Env = sandbox.ProxyEnv(slices.Clip(env), addr)
	return runProgram(ctx, spec, res)
}

// writeBundle writes the certificates to a file that only this user can read.
func writeBundle(bundle []byte) (string, error) {
	dir, err := os.MkdirTemp("", "egressd-ca-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(path, bundle, 0o600); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return path, nil
}
