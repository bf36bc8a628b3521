package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/daemon"
	"egressd/policy/upstream"
)

// options are what the command line and the environment of the daemon say.
type options struct {
	gate                           policyflags.Flags
	listen, transparent, dns       doors
	control, netns                 doors
	sources                        sources
	admin, tokens, events, caFile  string
	quota                          quota
	rotate                         rotation
	sync                           time.Duration
	resource                       attributes
	drain                          time.Duration
	logLevel                       slog.Level
	logFormat                      string
	traceable                      bool
	policies, presets, dnsUpstream list
	hosts                          hostList
}

// list is a flag that may be given more than once.
type list struct{ *policyflags.List }

// IsList implements listed.
func (list) IsList() bool { return true }

func (l list) String() string {
	if l.List == nil {
		return ""
	}
	return l.List.String()
}

func (o *options) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("egressd", flag.ContinueOnError)
	o.policies.List, o.presets.List, o.dnsUpstream.List = &o.gate.Files, &o.gate.Presets, &o.gate.Upstreams
	o.hosts.List = &o.gate.Hosts
	fs.Var(o.policies, "policy", "rules from this policy file: `[NAME=]FILE`; without NAME it is the policy default")
	fs.Var(&o.gate.Allow, "allow", "policy default: allow this `RULE`")
	fs.Var(&o.gate.Deny, "deny", "policy default: deny this `RULE`, whatever allows it")
	fs.Var(o.presets, "preset", "policy default: allow what this preset `NAME` lists")
	fs.Var(o.hosts, "host", "policy default: give a name fixed addresses: `NAME=ADDR`")
	fs.BoolVar(&o.gate.Audit, "audit", false, "policy default: allow everything; record what would have been denied")
	fs.Var(o.dnsUpstream, "dns-upstream", "resolve names with this `SERVER` (1.1.1.1, tcp://, tls://)")
	o.gate.RegisterUpstream(fs)
	fs.Var(&o.listen, "listen", "CONNECT, HTTP and SOCKS on `[NAME@]HOST:PORT`; none for none")
	fs.Var(&o.transparent, "transparent", "captured TCP on `[NAME@]HOST:PORT`")
	fs.Var(&o.dns, "dns", "the DNS filter, UDP and TCP, on `[NAME@]HOST:PORT`")
	fs.Var(&o.netns, "netns", "open these doors inside the network namespace `[NAME@]PATH`")
	fs.StringVar(&o.admin, "admin", "", "/healthz, /readyz, /metrics on `HOST:PORT` or unix:PATH")
	fs.Var(&o.control, "control", "let launch --egressd hand sandboxes over, at most what policy NAME allows: `[NAME@]unix:PATH`")
	fs.Var(&o.sources, "source", "judge clients from these addresses by this policy: `CIDR=NAME`")
	fs.StringVar(&o.tokens, "tokens", "", "who may use which policy by user name: a `FILE` of NAME TOKEN lines")
	fs.StringVar(&o.events, "events", "-", "append every decision to this `FILE` as JSON Lines; - is the standard output")
	fs.Var(&o.quota, "events-quota", "what each policy may write of events: `rate=SIZE,burst=SIZE,total=SIZE`")
	fs.Var(&o.rotate, "events-rotate", "put the events file away at this size, and begin a new one: `size=SIZE,keep=N`")
	cli.TimeVar(fs, &o.sync, "events-sync", 0, "make the events durable on disk each `TIME` (1s), not only at the end")
	fs.Var(&o.resource, "resource", "say in every event where this egressd runs: `NAME=VALUE` (host.name is there)")
	fs.StringVar(&o.caFile, "ca-bundle", "", "write the certificates that clients must trust if TLS is opened to this `FILE`")
	cli.TimeVar(fs, &o.drain, "drain", 30*time.Second, "on SIGTERM let flows finish for this `TIME` (30s)")
	fs.BoolVar(&o.traceable, "traceable", false, "let other processes of this user look into egressd: for a debugger, or inside a run of launch")
	fs.Var((*level)(&o.logLevel), "log-level", "log this `LEVEL` and above: debug, info, warn, error")
	fs.StringVar(&o.logFormat, "log-format", "text", "log in this `FORMAT`: text or json")
	return fs
}

// policyName matches a valid NAME.
var policyName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// config reports the daemon that o describes. daemon.Run validates it.
func (o *options) config() (daemon.Config, error) {
	c := daemon.Config{
		Doors: daemon.Doors{
			Listen: o.listen.of, Transparent: o.transparent.of, DNS: o.dns.of, Netns: o.netns.of, Control: o.control.of, Admin: o.admin,
		},
		Clients: daemon.Clients{Sources: o.sources, Tokens: o.tokens},
		Outputs: daemon.Outputs{Events: o.events, Quota: daemon.Quota(o.quota), Rotate: daemon.Rotation(o.rotate), Sync: o.sync, CABundle: o.caFile, Resource: o.resource},
		Process: daemon.Process{Traceable: o.traceable},
		Drain:   o.drain,
	}
	if !o.listen.given {
		c.Listen = []daemon.Door{{Addr: daemon.DefaultListen}}
	}
	if o.logFormat != "text" && o.logFormat != "json" {
		return c, fmt.Errorf("--log-format %q: text or json", o.logFormat)
	}
	if o.quota.Burst > 0 && o.quota.Rate == 0 {
		return c, errors.New("--events-quota burst=SIZE bounds what may come at once at a rate: give rate=SIZE, too")
	}
	if o.sync != 0 && o.sync < 10*time.Millisecond {
		return c, fmt.Errorf("--events-sync %v: a time such as 1s, at least 10ms, or 0 for the end alone", o.sync)
	}
	if o.drain < 0 {
		return c, fmt.Errorf("--drain %v: a time such as 30s, or 0 to close at once", o.drain)
	}
	flags := o.gate
	flags.Files = nil
	sets := map[string][]string{}
	for _, v := range o.gate.Files {
		name, file, err := namedFile(v)
		if err != nil {
			return c, err
		}
		sets[name] = append(sets[name], file)
	}
	def := daemon.Source{Name: daemon.DefaultPolicy, Files: sets[daemon.DefaultPolicy]}
	if doc := flags.Document(); len(doc.Allow)+len(doc.Deny)+len(doc.Presets)+len(doc.Hosts) > 0 || doc.Audit || len(def.Files) > 0 {
		doc.DNS.Upstreams, doc.Upstream = nil, upstream.Section{} // for every policy: see below
		def.Flags = doc
		c.Policies = append(c.Policies, def)
	}
	delete(sets, daemon.DefaultPolicy)
	for name, files := range sets {
		c.Policies = append(c.Policies, daemon.Source{Name: name, Files: files})
	}
	slices.SortFunc(c.Policies, func(a, b daemon.Source) int { return strings.Compare(a.Name, b.Name) })
	c.Upstreams, c.UpstreamProxy = flags.Document().DNS.Upstreams, flags.Document().Upstream
	return c, nil
}

// namedFile reads [NAME=]FILE.
func namedFile(v string) (name, file string, err error) {
	name, file, ok := strings.Cut(v, "=")
	if !ok || strings.ContainsRune(name, '/') {
		name, file = daemon.DefaultPolicy, v
	} else if !policyName.MatchString(name) {
		return "", "", fmt.Errorf("--policy %q: a policy's name has lower-case letters, digits, - . and _ (a file whose name holds = is written ./%s)", v, v)
	}
	if file == "" {
		return "", "", fmt.Errorf("--policy %q: the file is missing", v)
	}
	return name, file, nil
}

// doors is a repeatable flag of [NAME@]ADDR values.
type doors struct {
	of    []daemon.Door
	given bool
}

// IsList implements listed.
func (d *doors) IsList() bool { return true }

func (d *doors) String() string {
	if d == nil {
		return ""
	}
	var out []string
	for _, x := range d.of {
		out = append(out, x.String())
	}
	return strings.Join(out, " ")
}

// Set implements flag.Value.
func (d *doors) Set(s string) error {
	first := !d.given
	d.given = true
	if s == "none" {
		if !first {
			return errors.New("none stands alone")
		}
		return nil
	}
	door := daemon.Door{Addr: s}
	if name, addr, ok := strings.Cut(s, "@"); ok && !strings.ContainsAny(name, "/:") {
		if !policyName.MatchString(name) {
			return fmt.Errorf("%q is not a name of a policy", name)
		}
		door = daemon.Door{Policy: name, Addr: addr}
	}
	if door.Addr == "" {
		return errors.New("the address is missing")
	}
	d.of = append(d.of, door)
	return nil
}

// sources is the repeatable flag of CIDR=NAME values.
type sources []daemon.SourceRule

// IsList implements listed.
func (s *sources) IsList() bool { return true }

func (s *sources) String() string { return "" }

// Set implements flag.Value.
func (s *sources) Set(v string) error {
	cidr, name, ok := strings.Cut(v, "=")
	if !ok || !policyName.MatchString(name) {
		return errors.New("write CIDR=NAME, such as 10.42.0.0/16=team-a")
	}
	p, err := netip.ParsePrefix(cidr)
	if a, aerr := netip.ParseAddr(cidr); aerr == nil {
		p, err = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	if err != nil || p.Addr().Zone() != "" {
		return fmt.Errorf("%q is neither an address nor a CIDR", cidr)
	}
	if p != p.Masked() {
		return fmt.Errorf("%s has bits behind its length: write %s", p, p.Masked())
	}
	*s = append(*s, daemon.SourceRule{Prefix: p, Policy: name})
	return nil
}

// hostList is --host, whose values hold commas themselves.
type hostList struct{ list }

// Group implements grouped: a new value begins where a NAME= does.
func (hostList) Group(parts []string) (values []string) {
	for _, p := range parts {
		if n := len(values); n > 0 && !strings.Contains(p, "=") {
			values[n-1] += "," + p
			continue
		}
		values = append(values, p)
	}
	return values
}

// level is a flag whose value is a level of the log.
type level slog.Level

// String implements flag.Value.
func (l *level) String() string {
	if l == nil {
		return ""
	}
	return slog.Level(*l).String()
}

// Set implements flag.Value.
func (l *level) Set(v string) error {
	if (*slog.Level)(l).UnmarshalText([]byte(v)) != nil {
		return errors.New("write debug, info, warn or error")
	}
	return nil
}
