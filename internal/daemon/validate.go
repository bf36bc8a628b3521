package daemon

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"egressd/internal/daemon/admin"
)

// Validate reports, as a *ConfigError, what is wrong with c that can be found
// without opening anything.
func (c *Config) Validate() error {
	if len(c.Policies) == 0 {
		return misconfigured("no policy: give --policy FILE (or EGRESSD_POLICY), or --allow RULE; an empty file is a policy that denies everything")
	}
	for _, check := range []func() error{c.checkNames, c.checkDoors, c.checkSockets, c.checkReachable, c.checkSources, c.checkFiles, c.checkResource} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) hasPolicy(name string) bool {
	return slices.ContainsFunc(c.Policies, func(s Source) bool { return s.Name == name })
}

// unknownPolicy reports that what, a flag with its value, names a policy that does
// not exist.
func (c *Config) unknownPolicy(what, name string) error {
	var names []string
	for _, s := range c.Policies {
		names = append(names, s.Name)
	}
	return misconfigured("%s: there is no policy %q, but %s: add --policy %s=FILE", what, name, strings.Join(names, ", "), name)
}

// kinds are the doors that are opened by address, with their flags.
func (c *Config) kinds() []struct {
	flag string
	of   []Door
} {
	return []struct {
		flag string
		of   []Door
	}{{"--listen", c.Listen}, {"--transparent", c.Transparent}, {"--dns", c.DNS}, {"--netns", c.Netns}, {"--control", c.Control}}
}

func (c *Config) checkNames() error {
	for _, k := range c.kinds() {
		for _, d := range k.of {
			if d.Policy != "" && !c.hasPolicy(d.Policy) {
				return c.unknownPolicy(k.flag+" "+d.String(), d.Policy)
			}
			if k.flag == "--control" && d.Policy == "" && !c.hasPolicy(DefaultPolicy) {
				return misconfigured("--control %s: sessions need a ceiling: write NAME@%s, NAME being a policy", d, d)
			}
		}
	}
	for _, s := range c.Sources {
		if !c.hasPolicy(s.Policy) {
			return c.unknownPolicy("--source "+s.Prefix.String()+"="+s.Policy, s.Policy)
		}
	}
	return nil
}

func (c *Config) checkDoors() error {
	for _, k := range c.kinds() {
		for i, d := range k.of {
			var err error
			switch k.flag {
			case "--netns":
			case "--control":
				err = checkAddr(d.Addr, "unix")
			default:
				err = checkAddr(d.Addr, "tcp")
			}
			if err != nil {
				return misconfigured("%s %s: %w", k.flag, d, err)
			}
			if slices.ContainsFunc(k.of[:i], func(e Door) bool { return e.Addr == d.Addr }) {
				return misconfigured("%s %s is given twice", k.flag, d.Addr)
			}
		}
	}
	if c.Admin == "" {
		return nil
	}
	if _, _, err := admin.ParseAddr(c.Admin); err != nil {
		return misconfigured("--admin: %w", err)
	}
	return nil
}

// checkAddr accepts what can be listened on without asking a name server.
func checkAddr(s, network string) error {
	got, _, err := admin.ParseAddr(s)
	switch {
	case err != nil:
		return err
	case got != network && network == "unix":
		return errors.New("write unix:PATH: what is handed over are descriptors")
	case got != network:
		return errors.New("write HOST:PORT, such as 127.0.0.1:3128, or :3128 for every address")
	}
	return nil
}

// checkReachable refuses a daemon that no client could use.
func (c *Config) checkReachable() error {
	n := len(c.Sockets)
	for _, k := range c.kinds() {
		if k.flag != "--netns" {
			n += len(k.of)
		}
	}
	if n == 0 || n == 1 && len(c.Sockets) == 1 && c.Sockets[0].Name == "admin" {
		return misconfigured("no door: give --listen, --transparent, --dns or --control")
	}
	if c.hasPolicy(DefaultPolicy) || c.Tokens != "" || len(c.Sources) > 0 {
		return nil
	}
	for _, k := range c.kinds()[:3] {
		for _, d := range k.of {
			if d.Policy == "" && !slices.ContainsFunc(c.Netns, func(n Door) bool { return n.Policy != "" }) {
				return misconfigured("%s %s: whose policy? There is no policy default: write NAME@%s, or say who is judged by which with --source or --tokens", k.flag, d, d.Addr)
			}
		}
	}
	return nil
}

func (c *Config) checkSources() error {
	for i, s := range c.Sources {
		if slices.ContainsFunc(c.Sources[:i], func(e SourceRule) bool { return e.Prefix == s.Prefix }) {
			return misconfigured("--source %s is given twice", s.Prefix)
		}
	}
	return nil
}

// checkFiles refuses outputs that would overwrite an input.
func (c *Config) checkFiles() error {
	inputs := []string{c.Tokens}
	for _, s := range c.Policies {
		inputs = append(inputs, s.Files...)
	}
	if err := c.checkOutputs(inputs...); err != nil {
		return err
	}
	if c.Rotate.Size > 0 && (c.Events == "" || c.Events == "-") {
		return misconfigured("--events-rotate: the standard output is not a file: name one with --events FILE")
	}
	if c.CABundle != "" && (c.CABundle == c.Events || sameFile(c.CABundle, c.Events)) {
		return misconfigured("--ca-bundle %s is the events file: name another file", c.CABundle)
	}
	return nil
}

// checkOutputs refuses outputs that would overwrite one of inputs.
func (c *Config) checkOutputs(inputs ...string) error {
	for flag, out := range map[string]string{"--events": c.Events, "--ca-bundle": c.CABundle} {
		if out == "" || out == "-" {
			continue
		}
		for _, in := range inputs {
			if in != "" && sameFile(in, out) {
				return misconfigured("%s %s is a policy, one of its lists or the tokens: name another file", flag, out)
			}
		}
	}
	return nil
}

// sameFile reports whether a and b are names of one regular file.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && x.Mode().IsRegular() && os.SameFile(x, y)
}

// checkSockets knows every socket of the service manager by its name.
func (c *Config) checkSockets() error {
	for _, p := range c.Sockets {
		kind, name, named := strings.Cut(p.Name, ".")
		packet := p.Packet != nil
		switch kind {
		case kindProxy, kindTransparent, kindAdmin, kindControl:
			if packet {
				return misconfigured("socket %s of the service manager: a stream socket is wanted: write ListenStream=", p.Name)
			}
		case kindDNS:
		default:
			return misconfigured("socket %q of the service manager: set FileDescriptorName= to proxy, transparent, dns, admin or control, each with .NAME for a policy", p.Name)
		}
		if (named || kind == kindControl) && !c.hasPolicy(name) && (named || !c.hasPolicy(DefaultPolicy)) {
			return c.unknownPolicy("socket "+p.Name+" of the service manager", name)
		}
	}
	return nil
}

// Implementation constants: bounds of what an operator adds to every event.
const (
	maxAttributes     = 16
	maxAttributeName  = 64 // bytes
	maxAttributeValue = 256
)

// checkResource reports what is wrong with the attributes that every event is to hold.
func (c *Config) checkResource() error {
	list := c.Resource
	if len(list) > maxAttributes {
		return misconfigured("--resource is given %d times: at most %d attributes are written with every event", len(list), maxAttributes)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		switch value := list[name]; {
		case name == "" || len(name) > maxAttributeName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "":
			return misconfigured("--resource %s=%s: a name is at most %d small letters, digits, dots, underscores and hyphens, such as k8s.pod.name", name, value, maxAttributeName)
		case value == "" || len(value) > maxAttributeValue:
			return misconfigured("--resource %s: its value has %d bytes: 1 to %d are possible", name, len(value), maxAttributeValue)
		}
	}
	return nil
}
