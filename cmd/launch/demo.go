package main

import (
	"errors"
	"os"
	"strconv"

	"egressd/internal/cli"
	"egressd/internal/run"
	"egressd/internal/run/demo"
)

// Environment of the client that the demo runs inside.
const (
	demoPort = "LAUNCH_DEMO_PORT"
	demoCA   = "LAUNCH_DEMO_CA"
)

// demo runs a client against origins of its own: no Internet, no root.
func (l *launcher) demo(args []string) int {
	if len(args) == 1 && args[0] == "--client" {
		c := &demo.Client{
			Out:  l.Stdout,
			Port: l.Getenv(demoPort), CA: l.Getenv(demoCA), ProxyURL: l.Getenv("HTTPS_PROXY"),
		}
		if err := c.Run(); err != nil {
			return l.Fail(cli.ExitNo, err)
		}
		return cli.ExitOK
	}
	if len(args) > 0 {
		return l.Usage(errors.New("demo takes no arguments"))
	}
	origin, err := demo.Listen()
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	code := l.demoRun(origin)
	if err := origin.Close(); err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	text, err := origin.Report()
	l.Say("\n%s", text)
	if code == cli.ExitOK && err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	return code
}

func (l *launcher) demoRun(origin *demo.Origin) int {
	self, err := os.Executable()
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	port := strconv.Itoa(int(origin.Port))
	rule := demo.AllowedHost + ":" + port
	var o run.Options
	o.Flags() // the defaults
	o.Policy.Allow = []string{rule}
	o.Policy.Hosts = []string{demo.AllowedHost + "=127.0.0.1", demo.BlockedHost + "=127.0.0.1"}
	o.Program.Env = []string{demoPort + "=" + port, demoCA + "=" + origin.CA}
	o.Argv = []string{self, "demo", "--client"}
	l.Say("An origin on this machine answers for %s and %s.\nA small client now runs behind the gate, as if you had typed:\n\n  launch --allow %s -- client\n\n", demo.AllowedHost, demo.BlockedHost, rule)
	return l.Run(&o)
}
