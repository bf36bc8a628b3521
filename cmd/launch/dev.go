//go:build !small

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"egressd/dnsfilter"
	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run"
	"egressd/sandbox/vercel/fake"
)

// devOptions is what the command line of "launch dev vercel-api" says.
type devOptions struct {
	listen, state, token, team, project string

	hosts  policyflags.List
	faults []fake.Fault
	delays struct{ boot, stop, snapshot time.Duration }
}

func (o *devOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("launch dev vercel-api", flag.ContinueOnError)
	fs.StringVar(&o.listen, "listen", "127.0.0.1:0", "loopback `ADDRESS:PORT` to answer at; port 0 is any")
	fs.StringVar(&o.state, "state", "", "keep the disks of sandboxes below this `DIR` while it runs")
	fs.StringVar(&o.token, "token", "", "the bearer `TOKEN` to accept; one is made up when there is none")
	fs.StringVar(&o.team, "team", "team_dev", "the only `TEAM`")
	fs.StringVar(&o.project, "project", "prj_dev", "the only `PROJECT`")
	fs.Var(&o.hosts, "host", "lead a name to addresses of your own inside: `NAME=ADDR[,ADDR...]`")
	fs.Func("fault", "let requests go wrong: `'METHOD PATH status=429 retry-after=1 times=2'`", func(text string) error {
		f, err := fake.ParseFault(text)
		o.faults = append(o.faults, f)
		return err
	})
	fs.DurationVar(&o.delays.boot, "boot-delay", 0, "how long a session is pending: a `TIME`")
	fs.DurationVar(&o.delays.stop, "stop-delay", 0, "how long a session is stopping: a `TIME`")
	fs.DurationVar(&o.delays.snapshot, "snapshot-delay", 0, "how long a snapshot takes: a `TIME`")
	return fs
}

// dev holds what is for developing against a tier, without its service.
func (l *launcher) dev(args []string) int {
	if len(args) == 0 || args[0] != "vercel-api" {
		return l.Usage(errors.New("dev takes what to run: vercel-api"))
	}
	var o devOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args[1:]); done {
		return code
	}
	if fs.NArg() > 0 {
		return l.Usage(errors.New("dev vercel-api takes flags only"))
	}
	cfg, err := o.config(l)
	if err != nil {
		return l.Usage(err)
	}
	if err := l.serveVercelAPI(cfg, &o); err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	return cli.ExitOK
}

func (o *devOptions) config(l *launcher) (fake.Config, error) {
	if o.token == "" {
		o.token = "dev-" + strings.ToLower(rand.Text())
	}
	log := slog.New(slog.NewTextHandler(l.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	cfg := fake.Config{
		Dir: o.state, Token: o.token, TeamID: o.team, ProjectID: o.project, Log: log, Hosts: map[string][]netip.Addr{},
		Hide:      []string{l.Getenv("HOME")},
		BootDelay: o.delays.boot, StopDelay: o.delays.stop, SnapshotDelay: o.delays.snapshot,
	}
	for _, text := range o.hosts {
		name, addrs, ok := strings.Cut(text, "=")
		if !ok {
			return cfg, fmt.Errorf("--host %q: want NAME=ADDR", text)
		}
		for _, a := range strings.Split(addrs, ",") {
			addr, err := netip.ParseAddr(a)
			if err != nil {
				return cfg, fmt.Errorf("--host %q: %w", text, err)
			}
			cfg.Hosts[name] = append(cfg.Hosts[name], addr)
		}
	}
	upstreams, err := run.HostUpstreams()
	cfg.Resolver = &dnsfilter.Resolver{Upstreams: upstreams, Log: log}
	return cfg, err
}

// serveVercelAPI answers until the person ends it.
//
// Threat: somebody on the network, or a web page in this machine's browser, runs
// commands here -> it listens on loopback alone and answers who has the token.
// Left over: users of this machine who can read the terminal.
func (l *launcher) serveVercelAPI(cfg fake.Config, o *devOptions) error {
	at, err := netip.ParseAddrPort(o.listen)
	if err != nil || !at.Addr().IsLoopback() {
		return fmt.Errorf("--listen %s: want a loopback address with its port, such as 127.0.0.1:8787", o.listen)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	api, err := fake.New(cfg)
	if err != nil {
		return err
	}
	for _, f := range o.faults {
		if err := api.Inject(f); err != nil {
			return errors.Join(err, api.Close())
		}
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", at.String())
	if err != nil {
		return errors.Join(err, api.Close())
	}
	srv := &http.Server{Handler: api, ReadHeaderTimeout: 15 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	l.Print(o.words(ln.Addr().String()))
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

// words say how to reach the double.
func (o *devOptions) words(addr string) string {
	return fmt.Sprintf(`The double of the Vercel Sandbox API is ready at http://%[1]s/api, until you press Ctrl-C.
Sandboxes run on this machine, in the process tier. For launch, in another terminal:

  export VERCEL_SANDBOX_API_URL=http://%[1]s/api
  export VERCEL_TOKEN=%[2]s
  export VERCEL_TEAM_ID=%[3]s
  export VERCEL_PROJECT_ID=%[4]s

The SDK from npm takes the three as token, teamId and projectId, and the address by its fetch:

  fetch: (url, init) => fetch(url.replace("https://vercel.com/api", "http://%[1]s/api"), init)

What it was sent: GET http://%[1]s/_double/requests; what is to go wrong: POST http://%[1]s/_double/faults.
`, addr, o.token, o.team, o.project)
}
