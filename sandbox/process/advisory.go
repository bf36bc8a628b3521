package process

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

// isolationAdvisory names the env tier in events and errors.
const isolationAdvisory = "advisory"

// Advisory is the env tier (--isolation=env): no namespace, only proxy
// variables. A program that ignores them is not stopped, so every event says
// "advisory". While a run lasts, every process of this machine that finds the
// port can use the gate, with the same policy and the same record: the proxy
// has no passwords.
type Advisory struct {
	Gate gate.Config // as in [Backend]
}

// Isolation reports "advisory".
func (a *Advisory) Isolation() string { return isolationAdvisory }

// Supports reports a *sandbox.CapabilityError for a spec that is none: every
// system can set variables.
func (a *Advisory) Supports(spec sandbox.Spec) error {
	if _, err := commandLine(spec); err != nil {
		return &sandbox.CapabilityError{Isolation: isolationAdvisory, What: err.Error()}
	}
	return nil
}

// Run runs spec with proxy variables that point at a gate on the loopback. It
// forwards signals as [Backend.Run] does. An error means that nothing ran.
func (a *Advisory) Run(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	res := sandbox.Result{ExitCode: exitLauncher, Started: time.Now()}
	err := a.Supports(spec)
	if err == nil {
		err = a.run(ctx, spec, &res)
	}
	res.Ended = time.Now()
	return res, err
}

func (a *Advisory) run(ctx context.Context, spec sandbox.Spec, res *sandbox.Result) error {
	c := a.Gate
	c.Isolation = isolationAdvisory
	g, err := gate.New(c)
	if err != nil {
		return err
	}
	env := secretPlaceholders(spec.Env, c.Policy, c.SecretValue)
	if bundle := g.Bundle(); bundle != nil {
		path, err := writeBundle(bundle)
		if err != nil {
			return err
		}
		defer os.RemoveAll(filepath.Dir(path))
		env = caEnv(env, path)
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
	spec.Env = proxyEnv(slices.Clip(env), addr)
	return runPlain(ctx, spec, res)
}

// writeBundle writes the certificates where only this user's programs look.
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
