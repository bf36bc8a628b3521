package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/internal/cli/policyflags"
	"egressd/internal/daemon"
	"egressd/internal/daemon/tokens"
	"egressd/policy"
	"egressd/proxy"
)

// explainOptions are the flags of the daemon and a few more: its own command line
// and environment say which policies judge a destination.
type explainOptions struct {
	options
	name, method string
}

func (o *explainOptions) flags() *flag.FlagSet {
	fs := o.options.flags()
	fs.Init("explain", flag.ContinueOnError)
	fs.StringVar(&o.name, "name", "", "judge by the policy of this `NAME` alone")
	fs.StringVar(&o.method, "method", "", "judge a request with this HTTP `METHOD` (GET)")
	return fs
}

// explain says how the policies judge each target: 0 all allowed, 1 one denied,
// 2 a question that cannot be asked.
func (p *program) explain(args []string) int {
	var o explainOptions
	fs := o.flags()
	if code, done := p.parse(fs, args); done {
		return code
	}
	if fs.NArg() == 0 {
		return p.Usage(errors.New("explain needs a URL or HOST:PORT"))
	}
	all, err := o.compileAll(o.name)
	if err != nil {
		return p.Fail(cli.ExitUsage, err)
	}
	var out strings.Builder
	code := cli.ExitOK
	for _, c := range all {
		text, allowed, err := explain.Answers(c.policy, fs.Args(), strings.ToUpper(o.method), nil)
		if err != nil {
			return p.Usage(err)
		}
		if !allowed {
			code = cli.ExitNo
		}
		if len(all) > 1 {
			fmt.Fprintf(&out, "policy %s\n", c.name)
		}
		out.WriteString(text)
	}
	return max(p.Print(out.String()), code)
}

// check validates policy files, each alone; without any, all that the daemon would
// run with, tokens included. It says what they allow: 0 valid, 2 not.
func (p *program) check(args []string) int {
	var o options
	fs := o.flags()
	fs.Init("check", flag.ContinueOnError)
	if code, done := p.parse(fs, args); done {
		return code
	}
	var all []compiled
	var errs []error
	if fs.NArg() > 0 {
		for _, file := range fs.Args() {
			c, err := compile(daemon.Source{Name: file, Files: []string{file}})
			all, errs = append(all, c), append(errs, err)
		}
	} else {
		var err error
		all, err = o.compileAll("")
		errs = append(errs, err, o.checkTokens(all))
	}
	if err := errors.Join(errs...); err != nil {
		return p.Fail(cli.ExitUsage, err)
	}
	var out strings.Builder
	for _, c := range all {
		out.WriteString(explain.Policy(c.name, c.policy) + inForce(c.policy.Limits()))
	}
	return p.Print(out.String())
}

// inForce says in a line how many connections this machine lets a policy have.
func inForce(named policy.Limits) string {
	l, short := proxy.Room(memoryMax()).InForce(named)
	if short != "" {
		short = ": " + short + " leaves room for no more"
	}
	return fmt.Sprintf("limits  on this machine %d connections, %d of one client%s\n", l.Connections, l.ConnectionsPerClient, short)
}

// compiled is a policy under its name.
type compiled struct {
	name   string
	policy *policy.Policy
}

// compileAll compiles the policies that o configures, or only the one of this name
// if name is not "".
func (o *options) compileAll(name string) ([]compiled, error) {
	c, err := o.config()
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return nil, err
	}
	var all []compiled
	var errs []error
	var names []string
	for _, s := range c.Policies {
		names = append(names, s.Name)
		if name != "" && s.Name != name {
			continue
		}
		one, err := compile(s)
		all, errs = append(all, one), append(errs, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--name %q: there is no such policy, but %s", name, strings.Join(names, ", "))
	}
	return all, errors.Join(errs...)
}

// compile reads and compiles the policy that s describes.
func compile(s daemon.Source) (compiled, error) {
	pol, _, err := s.Compile(nil, daemon.Reader{ReadFile: func(name string) ([]byte, error) {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, policyflags.Unread(err)
		}
		return data, nil
	}})
	if err != nil {
		return compiled{}, err
	}
	return compiled{s.Name, pol}, nil
}

// checkTokens reports what is wrong with the tokens file: each token's name is
// that of a policy.
func (o *options) checkTokens(all []compiled) error {
	if o.tokens == "" {
		return nil
	}
	set, err := tokens.Load(o.tokens, nil)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, c := range all {
		known[c.name] = true
	}
	var errs []error
	for _, r := range set.Refs() {
		if !known[r.Name] && len(known) > 0 {
			errs = append(errs, fmt.Errorf("%s: there is no policy %s: add --policy %s=FILE", r.Pos, r.Name, r.Name))
		}
	}
	return errors.Join(errs...)
}

// presets lists the built-in presets, or shows the rules of those named.
func (p *program) presets(args []string) int {
	fs := flag.NewFlagSet("presets", flag.ContinueOnError)
	names := fs.Bool("names", false, "names only")
	if code, done := p.parse(fs, args); done {
		return code
	}
	if fs.NArg() == 0 {
		return p.Print(explain.Presets(*names))
	}
	text, err := explain.Preset("egressd", fs.Args())
	if err != nil {
		return p.Usage(err)
	}
	return p.Print(text)
}
