// Package policyflags turns the policy flags of a command line (--allow, --deny,
// --preset, --policy, --host, --audit) into one compiled policy, and rules into
// flags again.
//
//	var f policyflags.Flags
//	f.Register(fs)
//	... fs.Parse(args) ...
//	policy, err := f.Load(os.ReadFile)
package policyflags

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"egressd/gate"
	"egressd/policy"
	"egressd/policy/files"
	"egressd/policy/upstream"
)

// Flags is what the policy flags said. The zero Flags is the empty policy, which
// denies everything.
type Flags struct {
	Allow, Deny, Presets, Hosts, Files List

	Audit bool

	// Write, ReadOnly and Hide are paths, Home is what becomes of the home
	// directory. RegisterFiles adds their flags: not every command runs a program.
	Write, ReadOnly, Hide List
	Home                  files.Home

	// Upstreams are the DNS servers to ask, each value a comma list. They come
	// before those of the files. Register leaves their flag to the caller: not
	// every command resolves names.
	Upstreams List

	// Upstream is the upstream proxy of the flags, and Environ that of the caller's
	// environment, which counts if neither flags nor files name one.
	Upstream upstream.Section
	Environ  Environ

	// HostPorts are ports of the host's loopback that the inside may reach as
	// host.internal. Each adds its own rule.
	HostPorts []uint16

	// Found are documents of files that nobody named. They come after those of Files.
	Found []*policy.Document
}

// List is a flag that may be given more than once.
type List []string

// String implements [flag.Value].
func (l *List) String() string { return strings.Join(*l, " ") }

// Set implements [flag.Value].
func (l *List) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// rules is a List of rules, none of which begins with a hyphen.
type rules struct{ *List }

// Set implements [flag.Value].
func (r rules) Set(s string) error {
	if strings.HasPrefix(s, "-") {
		return errors.New("a rule is missing: what follows is a flag")
	}
	return r.List.Set(s)
}

// String implements [flag.Value].
func (r rules) String() string {
	if r.List == nil {
		return ""
	}
	return r.List.String()
}

// Register adds the flags to fs.
func (f *Flags) Register(fs *flag.FlagSet) {
	fs.Var(rules{&f.Allow}, "allow", "allow this `RULE`: a host, *.host, host:port, CIDR, or METHOD URL")
	fs.Var(rules{&f.Deny}, "deny", "deny this `RULE`, whatever allows it")
	fs.Var(&f.Presets, "preset", "allow what this preset `NAME` lists (the command presets shows them)")
	fs.Var(&f.Files, "policy", "read rules from this policy `FILE` (YAML)")
	fs.Var(&f.Hosts, "host", "give a name fixed addresses, as in /etc/hosts: `NAME=ADDR`")
	fs.BoolVar(&f.Audit, "audit", false, "allow everything; record what would have been denied")
}

// RegisterFiles adds the flags of the files section to fs.
func (f *Flags) RegisterFiles(fs *flag.FlagSet) {
	fs.Var(&f.Write, "write", "let the program write below this `DIR` (or file)")
	fs.Var(&f.ReadOnly, "read", "let the program read this `PATH`, and not write it")
	fs.Var(&f.Hide, "hide", "hide this `PATH` from the program; **/NAME: wherever it is")
	fs.Func("home", "the home directory is `ro` (as without it), rw, or private: empty, and gone afterwards", func(s string) (err error) {
		f.Home, err = files.ParseHome(s)
		return err
	})
}

// Document reports the flags as policy text, each entry with its place: the
// flag, and which of its values in order.
func (f *Flags) Document() *policy.Document {
	d := &policy.Document{
		Allow:    entries("--allow", f.Allow, Split),
		Deny:     entries("--deny", f.Deny, Split),
		Presets:  entries("--preset", f.Presets, splitNames),
		Hosts:    entries("--host", f.Hosts, nil),
		DNS:      policy.DNS{Upstreams: entries("--dns-upstream", f.Upstreams, splitNames)},
		Audit:    f.Audit,
		Upstream: f.upstreamSection(),
		Files: files.Section{
			Write: paths("--write", f.Write), Read: paths("--read", f.ReadOnly), Hide: paths("--hide", f.Hide), Home: f.Home,
		},
	}
	for i, port := range f.HostPorts {
		pos := policy.Pos{File: "--host-port", Line: i + 1}
		rule := fmt.Sprintf("raw:%s:%d", gate.HostInternal, port)
		d.Allow = append(d.Allow, policy.Entry{Text: rule, Pos: pos})
		if i == 0 {
			d.Hosts = append(d.Hosts, policy.Entry{Text: gate.HostInternal + "=127.0.0.1", Pos: pos})
		}
	}
	return d
}

// Load compiles the flags and the policy files they name. readFile is
// os.ReadFile. Errors name the file or the flag.
func (f *Flags) Load(readFile func(string) ([]byte, error)) (*policy.Policy, error) {
	docs, err := f.Documents(readFile)
	if err != nil {
		return nil, err
	}
	return policy.Compile(docs...)
}

// Unread is err, of a policy file that cannot be read, with what to do about it.
func Unread(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("policy: %w: check its name; launch --learn FILE -- PROGRAM writes one", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("policy: %w: let this user read it (chmod, chown)", err)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("policy: %w: name the file in it", err)
	}
	return fmt.Errorf("policy: %w", err)
}

// Documents reads what Load compiles.
func (f *Flags) Documents(readFile func(string) ([]byte, error)) ([]*policy.Document, error) {
	docs, err := readFiles(f.Files, func(name string) ([]byte, error) {
		data, err := readFile(name)
		if err != nil {
			return nil, Unread(err)
		}
		return data, nil
	})
	if err != nil {
		return nil, err
	}
	docs = append([]*policy.Document{f.Document()}, docs...)
	docs = append(docs, f.Found...)
	return append(docs, &policy.Document{Upstream: f.Environ.Section}), nil
}

// readFiles reads policy files with their lists and parses them, in order. Errors of readFile are
// reported as they are; those of the text name the file and the place.
func readFiles(names []string, readFile func(string) ([]byte, error)) ([]*policy.Document, error) {
	var docs []*policy.Document
	for _, name := range names {
		data, err := readFile(name)
		if err != nil {
			return nil, err
		}
		doc, err := policy.ParseFile(name, data)
		if err == nil {
			err = doc.ReadLists(readFile)
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

func entries(name string, values []string, split func(string) []string) []policy.Entry {
	var out []policy.Entry
	for i, v := range values {
		texts := []string{v}
		if split != nil {
			texts = split(v)
		}
		for _, t := range texts {
			out = append(out, policy.Entry{Text: t, Pos: policy.Pos{File: name, Line: i + 1}})
		}
	}
	return out
}

// paths are rules about files. A comma may be part of a path.
func paths(name string, values []string) (out []files.Rule) {
	for i, v := range values {
		out = append(out, files.Rule{Path: v, At: fmt.Sprintf("%s #%d", name, i+1)})
	}
	return out
}

func splitNames(s string) []string {
	out := strings.Split(s, ",")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}
