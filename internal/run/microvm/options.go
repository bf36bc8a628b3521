// Package microvm is what launch adds to the Vercel tier: flags, credentials, and
// what its records remember for the next run.
//
//	var o microvm.Options
//	o.Register(fs)
//	err := o.Validate(name)
//	client, err := o.Client(program, log)
package microvm

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/internal/run/records"
	"egressd/sandbox/vercel"
	"egressd/sandbox/vercel/api"
)

// Tier is the name of the tier.
const Tier = "vercel"

// Options are the flags of the Vercel tier. The zero Options are none of them.
type Options struct {
	vercel.Options
	Team, Project, TokenFile string // "": from the environment
	Workspace                string // where files of the service's tools are; "": the working directory

	Profile string // "": none
	Gate    string // an egressd for Linux to run beside the program; "": none

	source string
}

// Register defines the flags on fs.
func (o *Options) Register(fs *flag.FlagSet) {
	fs.BoolVar(&o.Keep, "keep", false, "vercel tier, with --name: leave the sandbox running")
	fs.BoolVar(&o.Adopt, "adopt", false, "vercel tier, with --name: take over a sandbox that somebody else, or another workspace, has left there")
	fs.StringVar(&o.Task, "task", "", "vercel tier: go on from the snapshot of this task `ID`, and leave one for the next run")
	fs.StringVar(&o.Runtime, "runtime", "", "vercel tier: a `NAME` such as node24 or python3.13")
	fs.StringVar(&o.Image, "image", "", "vercel tier: an image `NAME`, instead of a runtime")
	fs.StringVar(&o.Gate, "gate-inside", "", "vercel tier: also run the egressd in this `FILE`, a program for Linux, in the sandbox: it reports what programs ask its proxy")
	fs.StringVar(&o.Profile, "profile", "", "vercel tier: the size for a kind of `WORK`: ephemeral (1 vCPU), or coding-agent (2 vCPUs, with --name)")
	fs.Func("vcpus", "vercel tier: this `NUMBER` of processors, 1 or even; 2 GB of memory each", o.setVCPUs)
	fs.Func("port", "vercel tier: publish this `PORT` to everybody", o.setPort)
	fs.Func("tag", "vercel tier: mark the sandbox: `NAME=VALUE`", o.setTag)
	fs.StringVar(&o.Workdir, "vercel-workdir", "", "vercel tier: put the workspace into this absolute `DIR` of the VM")
	fs.Func("source", "vercel tier: begin with `SOURCE`: git:URL[#REVISION], tarball:URL or snapshot:ID", o.setSource)
	fs.Func("keep-snapshots", "vercel tier, with --name: let the service keep this `NUMBER` of snapshots of the disk, 1 to 10 (3)", o.setKeepSnapshots)
	fs.Func("snapshot-expiry", "vercel tier, with --name: how long after its last use a snapshot goes: `TIME`, as 7d, or never (7d)", func(s string) (err error) {
		o.Snapshots.Expiry, err = ParseExpiry(s)
		return err
	})
	fs.BoolVar(&o.All, "send-ignored", false, "vercel tier: also send files that .gitignore names")
	fs.StringVar(&o.Team, "vercel-team", "", "vercel tier: team `ID` (else VERCEL_TEAM_ID)")
	fs.StringVar(&o.Project, "vercel-project", "", "vercel tier: project `ID` (else VERCEL_PROJECT_ID)")
	fs.StringVar(&o.TokenFile, "vercel-token-file", "", "vercel tier: read the token from this `FILE` (else VERCEL_TOKEN or VERCEL_OIDC_TOKEN)")
}

// FlagNames lists the flags of Register.
func FlagNames() []string {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	new(Options).Register(fs)
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

func (o *Options) setVCPUs(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1 && n%2 != 0 {
		return fmt.Errorf("%q: 1, or an even number", s)
	}
	o.VCPUs = n
	return nil
}

func (o *Options) setKeepSnapshots(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 10 {
		return fmt.Errorf("%q: 1 to 10", s)
	}
	o.Snapshots.Count = n
	return nil
}

// ParseExpiry reads the time after which a snapshot goes: a day at least, as "7d"
// or "36h", or "never", which is negative.
func ParseExpiry(s string) (time.Duration, error) {
	if s == "never" {
		return -1, nil
	}
	var d time.Duration
	days, isDays := strings.CutSuffix(s, "d")
	n, err := strconv.Atoi(days)
	if isDays && err == nil && n <= 10_000 {
		d = time.Duration(n) * 24 * time.Hour
	} else {
		d, err = cli.ParseLimit(s)
	}
	if err != nil || d < 24*time.Hour {
		return 0, fmt.Errorf("%q: a day at least, as 7d, or never", s)
	}
	return d, nil
}

func (o *Options) setPort(s string) error {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n < 1024 {
		return fmt.Errorf("%q: a port from 1024 to 65535", s)
	}
	o.Ports = append(o.Ports, int(n))
	return nil
}

func (o *Options) setSource(s string) error {
	if o.source != "" {
		return errors.New("a disk begins with one source, and this is the second")
	}
	if s == "" {
		return errors.New("the source is empty")
	}
	o.source = s
	return nil
}

func (o *Options) setTag(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q: write NAME=VALUE", s)
	}
	if o.Tags == nil {
		o.Tags = map[string]string{}
	}
	o.Tags[name] = value
	return nil
}

// Validate checks the flags of a run. name is that of its sandbox, "" for none; it
// and --source become part of the Options.
func (o *Options) Validate(name string) error {
	switch {
	case o.Runtime != "" && o.Image != "":
		return errors.New("--runtime and --image are two ways to say the same: give one")
	case o.Keep && name == "":
		return errors.New("--keep needs a --name to find the sandbox again")
	case o.Snapshots != vercel.Snapshots{} && name == "":
		return errors.New("--keep-snapshots and --snapshot-expiry are for a sandbox with a --name")
	case o.Adopt && name == "":
		return errors.New("--adopt needs the --name of the sandbox to take over")
	case strings.Contains(name, "."):
		return fmt.Errorf("--name %q: Vercel accepts letters, digits, - and _", name)
	case o.Task != "" && records.ValidName(o.Task) != "":
		return fmt.Errorf("--task %q: %s", o.Task, records.ValidName(o.Task))
	}
	o.Name = name
	err := o.applyProfile()
	if err == nil {
		o.Source, err = parseSource(o.source)
	}
	return err
}

// applyProfile fills in what no flag has said. Sessions need no time here: they
// last as long as their run.
func (o *Options) applyProfile() error {
	vcpus := 0
	switch {
	case o.Profile == "":
	case o.Profile == "ephemeral" && o.Name != "":
		return errors.New("--profile ephemeral is for a run that keeps nothing: leave out --name")
	case o.Profile == "ephemeral":
		vcpus = 1
	case o.Profile == "coding-agent" && o.Name == "":
		return errors.New("--profile coding-agent keeps its disk: give it a --name")
	case o.Profile == "coding-agent":
		vcpus = 2
	default:
		return fmt.Errorf("--profile %q: ephemeral or coding-agent", o.Profile)
	}
	o.VCPUs = cmp.Or(o.VCPUs, vcpus)
	return nil
}

// parseSource reads --source; "" is nil.
func parseSource(s string) (*api.Source, error) {
	if s == "" {
		return nil, nil
	}
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "snapshot":
		if rest != "" {
			return &api.Source{Type: "snapshot", SnapshotID: rest}, nil
		}
	case "git", "tarball":
		u, err := url.Parse(rest)
		if err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
			src := &api.Source{Type: kind}
			if kind == "git" {
				src.Revision, u.Fragment = u.Fragment, ""
			}
			if u.User != nil {
				return nil, fmt.Errorf("--source %s: everybody can read a password on a command line; publish the source, or send it as the workspace", kind)
			}
			src.URL = u.String()
			return src, nil
		}
	}
	return nil, fmt.Errorf("--source %q: write git:https://HOST/PATH[#REVISION], tarball:https://HOST/PATH or snapshot:ID", s)
}
