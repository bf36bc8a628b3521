package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"egressd/internal/cli"
	"egressd/internal/daemon/admin"
)

type healthOptions struct {
	admin   string
	timeout time.Duration
}

func (o *healthOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("healthcheck", flag.ContinueOnError)
	fs.StringVar(&o.admin, "admin", "", "the daemon's admin address: `HOST:PORT` or unix:PATH")
	cli.TimeVar(fs, &o.timeout, "timeout", 3*time.Second, "wait for this `TIME` (3s)")
	return fs
}

// healthcheck asks a running daemon whether it accepts traffic: 0 yes, 1 no, with
// the reason in one line.
func (p *program) healthcheck(args []string) int {
	var o healthOptions
	fs := o.flags()
	if code, done := p.parse(fs, args); done {
		return code
	}
	switch {
	case fs.NArg() > 0:
		return p.Usage(errors.New("healthcheck takes no arguments"))
	case o.admin == "":
		return p.Usage(errors.New("healthcheck needs the daemon's admin address: --admin ADDR, or EGRESSD_ADMIN"))
	case o.timeout <= 0:
		return p.Usage(errors.New("--timeout: a time such as 3s, more than zero"))
	}
	if _, _, err := admin.ParseAddr(o.admin); err != nil {
		return p.Usage(fmt.Errorf("--admin: %w", err))
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout)
	defer cancel()
	if err := admin.Check(ctx, o.admin); err != nil {
		return p.Fail(cli.ExitNo, err)
	}
	return p.Print("ready\n")
}
