package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/daemon/verify"
)

// verifyOptions are the flags of egressd verify.
type verifyOptions struct {
	allowed, denied, admin, policy list
	proxy                          string
	uid                            numbers
	timeout                        time.Duration
}

func (o *verifyOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	for _, l := range []*list{&o.allowed, &o.denied, &o.admin, &o.policy} {
		l.List = new(policyflags.List)
	}
	o.uid.bits = 32
	fs.Var(o.allowed, "allowed", "this `URL` must work")
	fs.Var(o.denied, "denied", "this `URL` must be blocked (https://egressd-verify.invalid/)")
	fs.StringVar(&o.proxy, "proxy", "127.0.0.1:3128", "egressd's proxy at `HOST:PORT`; none for none")
	fs.Var(o.admin, "admin", "this admin or control address of egressd's must be out of reach: `HOST:PORT` or unix:PATH")
	fs.Var(o.policy, "policy", "this `FILE` must not be writable")
	fs.Var(&o.uid, "uid", "egressd's user: a `NUMBER` (65532)")
	cli.TimeVar(fs, &o.timeout, "timeout", 3*time.Second, "wait for this `TIME` in each attempt (3s)")
	return fs
}

func (o *verifyOptions) config() (verify.Config, error) {
	c := verify.Config{
		Allowed: *o.allowed.List, Denied: *o.denied.List, Proxy: o.proxy,
		UID: defaultUID, Admin: *o.admin.List, Policy: *o.policy.List, Timeout: o.timeout,
	}
	if len(o.uid.of) > 0 {
		c.UID = o.uid.of[0]
	}
	if len(c.Denied) == 0 {
		c.Denied = []string{"https://egressd-verify.invalid/"}
	}
	if !slices.Contains(c.Admin, "127.0.0.1:3131") {
		c.Admin = append(c.Admin, "127.0.0.1:3131") // the usual port of metrics
	}
	for i, p := range c.Policy {
		if _, file, err := namedFile(p); err == nil {
			c.Policy[i] = file
		}
	}
	if c.Proxy == "none" {
		c.Proxy = ""
	} else if _, _, err := net.SplitHostPort(c.Proxy); err != nil {
		return c, fmt.Errorf("--proxy %q: HOST:PORT, or none", c.Proxy)
	}
	for _, u := range slices.Concat(c.Allowed, c.Denied) {
		parsed, err := url.Parse(u)
		if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			return c, fmt.Errorf("%q is not a URL such as https://example.com/", u)
		}
	}
	if c.Timeout <= 0 {
		return c, errors.New("--timeout: a time such as 3s, more than zero")
	}
	return c, nil
}

// verify tries to get out past egressd: 0 nothing does, 1 something does.
func (p *program) verify(args []string) int {
	var o verifyOptions
	fs := o.flags()
	if code, done := p.parse(fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return p.Usage(fmt.Errorf("verify takes no argument, but got %q", fs.Arg(0)))
	}
	c, err := o.config()
	if err != nil {
		return p.Usage(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var v verdicts
	err = verify.Run(ctx, c, func(r verify.Result) { p.Print(v.line(r)) })
	if err != nil {
		return p.Fail(cli.ExitNo, err)
	}
	if code := p.Print(v.summary()); code != cli.ExitOK {
		return code
	}
	if v.failed > 0 {
		return cli.ExitNo
	}
	return cli.ExitOK
}

// verdicts counts results and gathers what to do about those that failed.
type verdicts struct {
	all, failed int
	advice      []string
}

func (v *verdicts) line(r verify.Result) string {
	v.all++
	word := "pass"
	if !r.Passed {
		word = "FAIL"
		v.failed++
		if r.Advice != "" && !slices.Contains(v.advice, r.Advice) {
			v.advice = append(v.advice, r.Advice)
		}
	}
	return fmt.Sprintf("%s  %s: %s\n", word, r.What, r.How)
}

func (v *verdicts) summary() string {
	if v.failed == 0 {
		return fmt.Sprintf("all %d attempts ended as they should\n", v.all)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d of %d attempts did not end as they should\n", v.failed, v.all)
	for _, a := range v.advice {
		fmt.Fprintf(&out, "  %s\n", a)
	}
	return out.String()
}
