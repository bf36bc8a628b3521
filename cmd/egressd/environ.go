package main

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"egressd/internal/nearest"
)

// envPrefix starts the variable of each flag: --ca-bundle is EGRESSD_CA_BUNDLE.
const envPrefix = "EGRESSD_"

// variable reports the variable of a flag.
func variable(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// listed is a flag that may be given more than once. Its variable holds a comma
// list.
type listed interface{ IsList() bool }

// grouped is a listed flag whose values may hold commas: Group joins their parts
// again.
type grouped interface{ Group(parts []string) []string }

// typedOnly is a flag that no variable sets.
type typedOnly interface{ IsTyped() bool }

// fromEnvironment sets from environ the flags of fs that the command line did not
// set, and reports the variables that it used. It ignores variables of other
// commands' flags. A variable that no command knows is an error: a misspelt one
// would otherwise change nothing, silently.
func fromEnvironment(fs *flag.FlagSet, environ []string) (used []string, err error) {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	known := knownVariables(fs)
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !strings.HasPrefix(name, envPrefix) {
			continue
		}
		if serviceLink(name, value) {
			continue
		}
		if !slices.Contains(known, name) {
			return nil, unknownVariable(name, known)
		}
		f := lookup(fs, name)
		if f == nil || value == "" {
			continue // another command's, or not set
		}
		if t, ok := f.Value.(typedOnly); ok && t.IsTyped() {
			return nil, fmt.Errorf("%s is no variable: type --%s, if that is what you want, and unset it", name, f.Name)
		}
		if given[f.Name] {
			continue
		}
		if err := setFlag(f, value); err != nil {
			return nil, fmt.Errorf("%s=%q: %w", name, value, err)
		}
		used = append(used, name)
	}
	return used, nil
}

// mentioned says which of the flags that text names were set by variables: a person
// who wrote no flag would search for it in vain.
func mentioned(text string, variables []string) string {
	var out []string
	for _, v := range variables {
		if name := flagOf(v); strings.Contains(text, name+" ") || strings.Contains(text, name+":") {
			out = append(out, fmt.Sprintf("(%s was set by the variable %s)", name, v))
		}
	}
	return strings.Join(out, "\n")
}

// flagOf reports the flag of a variable.
func flagOf(variable string) string {
	return "--" + strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, envPrefix), "_", "-"))
}

// lookup finds the flag whose variable is name.
func lookup(fs *flag.FlagSet, name string) (found *flag.Flag) {
	fs.VisitAll(func(f *flag.Flag) {
		if variable(f.Name) == name {
			found = f
		}
	})
	return found
}

// setFlag sets f from its variable: a comma list if f may be given more than once.
func setFlag(f *flag.Flag, value string) error {
	if l, ok := f.Value.(listed); ok && l.IsList() {
		var parts []string
		for _, v := range strings.Split(value, ",") {
			if v = strings.TrimSpace(v); v != "" {
				parts = append(parts, v)
			}
		}
		if g, ok := f.Value.(grouped); ok {
			parts = g.Group(parts)
		}
		for _, v := range parts {
			if err := f.Value.Set(v); err != nil {
				return err
			}
		}
		return nil
	}
	return f.Value.Set(value)
}

// knownVariables lists the variables of every command's flags, and of fs.
func knownVariables(fs *flag.FlagSet) []string {
	var names []string
	sets := []*flag.FlagSet{fs, new(options).flags()}
	for _, c := range (*program)(nil).commands() {
		if c.Flags != nil {
			sets = append(sets, c.Flags())
		}
	}
	for _, s := range sets {
		s.VisitAll(func(f *flag.Flag) { names = append(names, variable(f.Name)) })
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// linkName is what Kubernetes names the variables it puts into every container
// for each service of the namespace ("service links").
var linkName = regexp.MustCompile(`^EGRESSD_([A-Z0-9_]*_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// serviceLink reports whether Kubernetes itself set a variable, for a service whose
// name begins with egressd.
func serviceLink(name, value string) bool {
	if !linkName.MatchString(name) {
		return false
	}
	// EGRESSD_DNS_PORT is also a flag's, but never with tcp://10.0.0.1:3128 in it.
	if strings.HasSuffix(name, "_PORT") && !strings.HasSuffix(name, "_SERVICE_PORT") && !transportPort(name) {
		return strings.Contains(value, "://")
	}
	return true
}

// transportPort reports whether name is that of EGRESSD_PORT_3128_TCP_PORT.
func transportPort(name string) bool {
	return strings.HasSuffix(name, "_TCP_PORT") || strings.HasSuffix(name, "_UDP_PORT") || strings.HasSuffix(name, "_SCTP_PORT")
}

func unknownVariable(name string, known []string) error {
	// Up to three letters wrong are a slip, in a word that is longer than that.
	if best := nearest.Word(name, known, min(3, (len(name)-len(envPrefix))/2)); best != "" {
		return fmt.Errorf("%s is not a variable of egressd: did you mean %s?", name, best)
	}
	return fmt.Errorf("%s is not a variable of egressd: every flag is one, such as %sPOLICY for --policy; unset it", name, envPrefix)
}
