package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"egressd/internal/cli"
	"egressd/internal/daemon/ship"
	"egressd/internal/daemon/ship/otlp"
)

// shipOptions are the flags of egressd ship.
type shipOptions struct {
	events, otlp, headers, ca, state string
	once                             bool
	drain                            time.Duration
}

func (o *shipOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("ship", flag.ContinueOnError)
	fs.StringVar(&o.events, "events", "", "the events `FILE` of an egressd or a launch")
	fs.StringVar(&o.otlp, "otlp", "", "send to the OpenTelemetry collector at this `URL`, over OTLP/HTTP; /v1/logs unless it has a path")
	fs.StringVar(&o.headers, "headers", "", "send the headers in this `FILE` along, a line each: NAME: VALUE")
	fs.StringVar(&o.ca, "ca", "", "the authorities in this `FILE` vouch for the collector, besides the system's")
	fs.StringVar(&o.state, "state", "", "remember in this `FILE` how far lines were taken; without it, beside the events, as FILE.shipped")
	fs.BoolVar(&o.once, "once", false, "end when all that is there was taken")
	cli.TimeVar(fs, &o.drain, "drain", 5*time.Second, "how long SIGTERM may take for what is there yet (5s)")
	return fs
}

// ship carries an events file to a collector, until a signal: 0, or 1 with the reason.
func (p *program) ship(args []string) int {
	var o shipOptions
	fs := o.flags()
	if code, done := p.parse(fs, args); done {
		return code
	}
	s, err := o.shipper(slog.New(slog.NewTextHandler(p.Stderr, nil)), fs.NArg())
	if err != nil {
		return p.Usage(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = s.Run(ctx, o.once)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		stop() // a second signal ends it at once
		last, cancel := context.WithTimeout(context.Background(), o.drain)
		defer cancel()
		if err = s.Run(last, true); err != nil && last.Err() != nil {
			err = nil // the rest is in the file
		}
	}
	if err != nil {
		return p.Fail(cli.ExitNo, err)
	}
	return cli.ExitOK
}

func (o *shipOptions) shipper(log *slog.Logger, arguments int) (*ship.Shipper, error) {
	switch {
	case arguments > 0:
		return nil, errors.New("ship takes no arguments")
	case o.events == "" || o.events == "-":
		return nil, errors.New("--events: name the file that egressd --events or launch --events writes")
	case o.otlp == "":
		return nil, errors.New("--otlp: name the collector, such as http://127.0.0.1:4318")
	}
	client, err := otlp.New(o.otlp, otlp.Files{Headers: o.headers, CA: o.ca}, cli.Version())
	if err != nil {
		return nil, err
	}
	if o.state == "" {
		o.state = o.events + ".shipped"
	}
	if o.state, err = filepath.Abs(o.state); err != nil {
		return nil, err
	}
	if o.events, err = filepath.Abs(o.events); err != nil {
		return nil, err
	}
	return &ship.Shipper{Events: o.events, State: o.state, Send: client.Send, Log: log}, nil
}
