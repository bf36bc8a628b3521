// Package dev is what works on a tier, or around an agent, without its service: launch dev.
//
//	commands = append(commands, dev.Commands(l)...)
package dev

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"egressd/dnsfilter"
	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run"
	"egressd/internal/run/double"
	"egressd/sandbox/vercel/fake"
)

// launcher is what every command gets.
type launcher struct{ *run.Launcher }

// Commands is launch dev.
func Commands(l *run.Launcher) []cli.Command {
	return []cli.Command{{
		Name: "dev", Run: launcher{l}.dev,
		Flags: func() *flag.FlagSet { return new(options).flags() }, Words: func() []string { return []string{"vercel-api"} },
	}}
}

// options is what the command line of "launch dev vercel-api" says.
type options struct {
	double.Config
	hosts policyflags.List
}

func (o *options) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("launch dev vercel-api", flag.ContinueOnError)
	fs.StringVar(&o.Listen, "listen", "127.0.0.1:0", "loopback `ADDRESS:PORT` to answer at; port 0 is any")
	fs.StringVar(&o.API.Dir, "state", "", "keep the disks of sandboxes below this `DIR` while it runs")
	fs.StringVar(&o.API.Token, "token", "", "the bearer `TOKEN` to accept; one is made up when there is none")
	fs.StringVar(&o.API.TeamID, "team", "team_dev", "the only `TEAM`")
	fs.StringVar(&o.API.ProjectID, "project", "prj_dev", "the only `PROJECT`")
	fs.Var(&o.hosts, "host", "lead a name to addresses of your own inside: `NAME=ADDR[,ADDR...]`")
	fs.Func("fault", "let requests go wrong: `'METHOD PATH status=429 retry-after=1 times=2'`", func(text string) error {
		f, err := fake.ParseFault(text)
		o.Faults = append(o.Faults, f)
		return err
	})
	fs.DurationVar(&o.API.Delays.Boot, "boot-delay", 0, "how long a session is pending: a `TIME`")
	fs.DurationVar(&o.API.Delays.Stop, "stop-delay", 0, "how long a session is stopping: a `TIME`")
	fs.DurationVar(&o.API.Delays.Snapshot, "snapshot-delay", 0, "how long a snapshot takes: a `TIME`")
	return fs
}

// dev holds what is for work on a tier, without its service.
func (l launcher) dev(args []string) int {
	if len(args) > 0 && args[0] == "mock-agent" {
		return l.mockAgent(args[1:])
	}
	if len(args) == 0 || args[0] != "vercel-api" {
		return l.Usage(errors.New("dev takes what to run: vercel-api, mock-agent"))
	}
	var o options
	fs := o.flags()
	if code, done := l.Parse(fs, args[1:]); done {
		return code
	}
	if fs.NArg() > 0 {
		return l.Usage(errors.New("dev vercel-api takes flags only"))
	}
	if err := o.complete(l); err != nil {
		return l.Usage(err)
	}
	if err := double.Serve(o.Config); err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	return cli.ExitOK
}

// complete adds to the configuration what is not a flag.
func (o *options) complete(l launcher) error {
	if o.API.Token == "" {
		o.API.Token = "dev-" + strings.ToLower(rand.Text())
	}
	o.API.Log = slog.New(slog.NewTextHandler(l.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.API.Hide = []string{l.Getenv("HOME")}
	o.API.Hosts = map[string][]netip.Addr{}
	o.Ready = func(addr string) { l.Print(o.text(addr)) }
	for _, text := range o.hosts {
		name, addrs, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("--host %q: want NAME=ADDR", text)
		}
		for _, a := range strings.Split(addrs, ",") {
			addr, err := netip.ParseAddr(a)
			if err != nil {
				return fmt.Errorf("--host %q: %w", text, err)
			}
			o.API.Hosts[name] = append(o.API.Hosts[name], addr)
		}
	}
	upstreams, err := run.HostUpstreams()
	o.API.Resolver = &dnsfilter.Resolver{Upstreams: upstreams, Log: o.API.Log}
	return err
}

// text says how to reach the double.
func (o *options) text(addr string) string {
	return fmt.Sprintf(`The double of the Vercel Sandbox API is ready at http://%[1]s/api, until you press Ctrl-C.
Sandboxes run on this machine, in the process tier. For launch, in another terminal:

  export VERCEL_SANDBOX_API_URL=http://%[1]s/api
  export VERCEL_TOKEN=%[2]s
  export VERCEL_TEAM_ID=%[3]s
  export VERCEL_PROJECT_ID=%[4]s

The SDK from npm takes the three as token, teamId and projectId, and the address by its fetch:

  fetch: (url, init) => fetch(url.replace("https://vercel.com/api", "http://%[1]s/api"), init)

What it was sent: GET http://%[1]s/_double/requests; what is to go wrong: POST http://%[1]s/_double/faults.
`, addr, o.API.Token, o.API.TeamID, o.API.ProjectID)
}
