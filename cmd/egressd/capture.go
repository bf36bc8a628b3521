package main

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"egressd/internal/cli"
	"egressd/netns"
	"egressd/netns/pod"
)

// captureOptions are the flags of egressd capture.
type captureOptions struct {
	users, protect       numbers
	mark                 uint32
	transparent, dns     string
	netns                string
	print, remove, whole bool
	hold                 bool
}

// defaultUID is the user of egressd in its image.
const defaultUID = 65532

func (o *captureOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("capture", flag.ContinueOnError)
	o.users.bits, o.protect.bits = 32, 16
	fs.Var(&o.users, "uid", "exempt this user, egressd's: a `NUMBER` or several (65532)")
	fs.Func("mark", "exempt packets with this mark instead: a `NUMBER`", o.setMark)
	fs.StringVar(&o.transparent, "transparent-port", "3129", "where captured TCP goes: a `PORT` (3129)")
	fs.StringVar(&o.dns, "dns-port", "3130", "where DNS goes: a `PORT` (3130); none refuses DNS")
	fs.Var(&o.protect, "protect-port", "only egressd itself may reach this `PORT` from inside, or several")
	fs.StringVar(&o.netns, "netns", "", "in the network namespace `PATH`, not in this process's own")
	fs.Var((*typed)(&o.print), "print", "print the rules for nft -f and install nothing; typed in this spelling alone")
	fs.Var((*typed)(&o.remove), "remove", "remove the rules; typed in this spelling alone")
	fs.BoolVar(&o.hold, "hold", false, "install the rules, then stay until a signal comes: for the container that owns the namespace")
	fs.BoolVar(&o.whole, "machine", false, "capture even the machine's own network, with all its programs")
	return fs
}

// typed is a flag that leaves a namespace without its rules.
//
// Threat: whoever may set a variable or an argument of the container that captures,
// and not its command, has it print or remove the rules and end as if they were in
// force; a policy of a cluster that looks for --remove is passed by -remove or
// --remove=true -> no variable sets such a flag, and there is one spelling. Left
// over: who may type the flag.
type typed bool

// IsBoolFlag makes package flag take no value.
func (t *typed) IsBoolFlag() bool { return true }

// IsTyped implements typedOnly.
func (t *typed) IsTyped() bool { return true }

func (t *typed) String() string { return "" }

// Set implements flag.Value.
func (t *typed) Set(s string) error {
	if s != "true" {
		return errors.New("it takes no value")
	}
	*t = true
	return nil
}

// spelled refuses flags of fs that have one spelling in any other one.
func spelled(fs *flag.FlagSet, args []string) (err error) {
	fs.VisitAll(func(f *flag.Flag) {
		if _, ok := f.Value.(typedOnly); !ok {
			return
		}
		for _, arg := range args {
			bare, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if strings.HasPrefix(arg, "-") && bare == f.Name && arg != "--"+f.Name {
				err = fmt.Errorf("%q: write --%s", arg, f.Name)
			}
		}
	})
	return err
}

func (o *captureOptions) setMark(s string) error {
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil || n == 0 {
		return errors.New("a mark is a number from 1 to 0xffffffff")
	}
	o.mark = uint32(n)
	return nil
}

// rules are the rules that the flags describe.
func (o *captureOptions) rules() (pod.Rules, error) {
	r := pod.Rules{Mark: o.mark, Machine: o.whole}
	if len(o.users.of) > 0 || o.mark == 0 {
		r.Users = []uint32{defaultUID}
	}
	if len(o.users.of) > 0 {
		r.Users = o.users.of
	}
	for _, p := range o.protect.of {
		r.Protected = append(r.Protected, uint16(p))
	}
	var err error
	if r.TransparentPort, err = portNumber("transparent-port", o.transparent); err != nil {
		return r, err
	}
	if o.dns != "none" {
		if r.DNSPort, err = portNumber("dns-port", o.dns); err != nil {
			return r, err
		}
	}
	if len(r.Users) > 0 && r.Mark != 0 {
		return r, errors.New("give either --uid or --mark")
	}
	return r, r.Validate()
}

func portNumber(name, s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("--%s %q is not a port", name, s)
	}
	return uint16(n), nil
}

// numbers is a flag that takes several numbers: repeated, or with commas.
type numbers struct {
	of   []uint32
	bits int
}

// IsList implements listed.
func (n *numbers) IsList() bool { return true }

func (n *numbers) String() string { return "" }

// Set implements flag.Value.
func (n *numbers) Set(s string) error {
	for _, field := range strings.Split(s, ",") {
		v, err := strconv.ParseUint(strings.TrimSpace(field), 10, n.bits)
		if err != nil {
			return fmt.Errorf("%q is not a number up to %d", field, uint64(1)<<n.bits-1)
		}
		n.of = append(n.of, uint32(v))
	}
	return nil
}

// capture installs, prints or removes the rules that send everything of a
// network namespace to egressd.
func (p *program) capture(args []string) int {
	var o captureOptions
	fs := o.flags()
	if len(args) == 1 && args[0] == "help" {
		return p.help([]string{fs.Name()})
	}
	if err := spelled(fs, args); err != nil {
		return p.Usage(err)
	}
	if code, done := p.parse(fs, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return p.Usage(fmt.Errorf("capture takes no argument, but got %q", fs.Arg(0)))
	}
	rules, err := o.rules()
	if err != nil {
		return p.Usage(err)
	}
	if o.print && o.remove || o.hold && (o.print || o.remove) {
		return p.Usage(errors.New("give one of --print, --remove and --hold"))
	}
	var answer string
	err = inNamespace(o.netns, func() (err error) {
		switch {
		case o.print:
			answer, err = printed(rules)
		case o.remove:
			answer, err = removed()
		default:
			answer, err = installed(rules)
		}
		return err
	})
	if err != nil {
		return p.Fail(cli.ExitNo, captureHelp(err))
	}
	if code := p.Print(answer); code != cli.ExitOK || !o.hold {
		return code
	}
	return p.hold()
}

// inNamespace runs fn in the namespace at path; "" is the process's own.
func inNamespace(path string, fn func() error) error {
	if path == "" {
		return fn()
	}
	ns, err := netns.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(ns.Do(fn), ns.Close())
}

func printed(rules pod.Rules) (string, error) {
	devices, err := pod.Devices()
	if err != nil && !errors.Is(err, pod.ErrNotSupported) {
		return "", err
	}
	return rules.Text(devices), nil
}

func removed() (string, error) {
	was, err := pod.Remove()
	switch {
	case err != nil:
		return "", err
	case was:
		return "capture removed: nothing is held back here any more\n", nil
	default:
		return "there was no capture to remove\n", nil
	}
}

func installed(rules pod.Rules) (string, error) {
	result, err := rules.Install()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	what := "captured"
	switch {
	case !result.Changed:
		what = "captured already, by exactly these rules"
	case result.Replaced:
		what = "captured by new rules, which replaced egressd's former ones"
	}
	dns := fmt.Sprintf("DNS to port %d", rules.DNSPort)
	if rules.DNSPort == 0 {
		dns = "DNS is refused"
	}
	fmt.Fprintf(&out, "%s: TCP goes to port %d, %s, everything else is refused; %s may leave\n",
		what, rules.TransparentPort, dns, exempted(rules))
	if result.Isolated {
		out.WriteString("this namespace has no network of its own: every address leads back into it, and egressd --netns is the only way out\n")
	}
	if len(result.Devices) > 0 {
		fmt.Fprintf(&out, "frames that are not IP are refused on %s\n", strings.Join(result.Devices, ", "))
	}
	for _, note := range result.Notes {
		fmt.Fprintf(&out, "note: %s\n", note)
	}
	return out.String(), nil
}

func exempted(rules pod.Rules) string {
	if rules.Mark != 0 {
		return fmt.Sprintf("only packets with mark %#x", rules.Mark)
	}
	users := make([]string, len(rules.Users))
	for i, id := range rules.Users {
		users[i] = strconv.FormatUint(uint64(id), 10)
	}
	return "only user " + strings.Join(users, ", ")
}

// captureHelp adds to an error what to type next.
func captureHelp(err error) error {
	switch {
	case errors.Is(err, pod.ErrNotPermitted):
		return fmt.Errorf(`%w
Kubernetes: in this init container alone, and never in the agent's,
  securityContext: {runAsUser: 0, capabilities: {drop: [ALL], add: [NET_ADMIN]}}
Compose: user: "0:0", cap_drop: [ALL], cap_add: [NET_ADMIN]
Docker and Podman: --user 0:0 --cap-drop ALL --cap-add NET_ADMIN
elsewhere: run it as root (sudo)`, err)
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w\nanother network namespace is entered with the capability SYS_ADMIN: run it as root (sudo)", err)
	case errors.Is(err, pod.ErrMachine):
		return fmt.Errorf(`%w
Kubernetes: remove hostNetwork: true from the pod; Docker: --network host
a machine that runs nothing but the agent, such as a CI runner: add --machine`, err)
	case errors.Is(err, pod.ErrNotSupported):
		return fmt.Errorf(`%w
nothing is captured, so do not start the agent
needed: Linux 5.2 with nf_tables, its inet family, NAT, reject and conntrack marks
(modules nf_tables, nft_chain_nat, nft_redir, nft_ct, nft_reject_inet); gVisor has none of them`, err)
	default:
		return err
	}
}
