//go:build linux

package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// parsed is what a command line and an environment say together.
func parsed(t *testing.T, environ []string, args ...string) (*options, error) {
	t.Helper()
	var o options
	fs := o.flags()
	fs.SetOutput(io.Discard)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	_, err := fromEnvironment(fs, environ)
	return &o, err
}

func TestVariables(t *testing.T) {
	for _, tt := range []struct {
		environ, args []string
		got           func(o *options) any
		want          string
	}{
		{[]string{"EGRESSD_EVENTS=a"}, nil, func(o *options) any { return o.events }, "a"},
		{[]string{"EGRESSD_EVENTS=a"}, []string{"--events", "b"}, func(o *options) any { return o.events }, "b"},
		{[]string{"EGRESSD_EVENTS="}, nil, func(o *options) any { return o.events }, "-"},
		{[]string{"EGRESSD_CA_BUNDLE=x"}, nil, func(o *options) any { return o.caFile }, "x"},
		{[]string{"EGRESSD_AUDIT=true"}, nil, func(o *options) any { return o.gate.Audit }, "true"},
		{[]string{"EGRESSD_POLICY=a.yaml, team=b c.yaml,"}, nil, func(o *options) any { return strings.Join(o.gate.Files, "|") }, "a.yaml|team=b c.yaml"},
		{[]string{"EGRESSD_POLICY=a.yaml"}, []string{"--policy", "b.yaml"}, func(o *options) any { return strings.Join(o.gate.Files, "|") }, "b.yaml"},
		{[]string{"EGRESSD_ALLOW=github.com:22,443,a.example"}, nil, func(o *options) any { return len(o.gate.Document().Allow) }, "2"},
		{[]string{"EGRESSD_HOST=a=192.0.2.1,192.0.2.2,b=192.0.2.3"}, nil, func(o *options) any { return strings.Join(o.gate.Hosts, "|") }, "a=192.0.2.1,192.0.2.2|b=192.0.2.3"},
		{[]string{"EGRESSD_LISTEN=none"}, nil, func(o *options) any { return len(o.listen.of) }, "0"},
		{[]string{"EGRESSD_LISTEN=:1,b@:2"}, nil, func(o *options) any { return o.listen.String() }, ":1 b@:2"},
		{[]string{"EGRESSD_SOURCE=10.0.0.0/8=a,192.0.2.1=b"}, nil, func(o *options) any { return len(o.sources) }, "2"},
		{[]string{"EGRESSD_DRAIN=5s"}, nil, func(o *options) any { return o.drain }, "5s"},
		{[]string{"EGRESSD_LOG_LEVEL=warn"}, nil, func(o *options) any { return o.logLevel }, "WARN"},
		{[]string{"EGRESSD_UID=7", "EGRESSD_PORT=tcp://192.0.2.1:1", "PATH=x", "EGRESSDX=1"}, nil, func(*options) any { return "" }, ""},
	} {
		o, err := parsed(t, tt.environ, tt.args...)
		if err != nil {
			t.Errorf("%q %q: %v", tt.environ, tt.args, err)
			continue
		}
		if got := strings.Trim(strings.ReplaceAll(fmt.Sprint(tt.got(o)), `"`, ""), " "); got != tt.want {
			t.Errorf("%q %q: got %q, want %q", tt.environ, tt.args, got, tt.want)
		}
	}
	for environ, want := range map[string]string{
		"EGRESSD_POLICIES=x": "did you mean EGRESSD_POLICY?", "EGRESSD_ALOW=x": "EGRESSD_ALLOW", "EGRESSD_X=1": "unset it", "EGRESSD_=1": "unset it",
		"EGRESSD_PORT=3128": "not a variable", "EGRESSD_AUDIT=perhaps": "EGRESSD_AUDIT", "EGRESSD_LISTEN=none,:1": "", "EGRESSD_SOURCE=10.0.0.0/8": "CIDR=NAME",
	} {
		if _, err := parsed(t, []string{environ}); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", environ, err, want)
		}
	}
}

// A door's name and address, and what is neither.
func TestDoorFlags(t *testing.T) {
	for value, want := range map[string]string{
		"127.0.0.1:1": "/127.0.0.1:1", "a@127.0.0.1:1": "a/127.0.0.1:1", "team-a@unix:/x@y": "team-a/unix:/x@y", "unix:/x@y": "/unix:/x@y", "/proc/1/ns@net": "/" + "/proc/1/ns@net",
	} {
		var d doors
		if err := d.Set(value); err != nil || d.of[0].Policy+"/"+d.of[0].Addr != want {
			t.Errorf("%s: %+v, %v", value, d.of, err)
		}
	}
	for _, value := range []string{"", "a@", "@:1", "-x@:1", "a b@:1"} {
		if err := new(doors).Set(value); err == nil {
			t.Errorf("%q is a door", value)
		}
	}
	var d doors
	if d.Set("none") != nil || d.Set("none") == nil || !d.given {
		t.Error("none stands alone")
	}
}

// Every flag of the daemon is in the help.
func TestHelpNamesEveryFlag(t *testing.T) {
	var missing []string
	var o options
	fs := o.flags()
	for _, name := range flagNames(fs) {
		if !strings.Contains(longHelp, "--"+name+" ") {
			missing = append(missing, name)
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		t.Errorf("help.txt does not name %q", missing)
	}
	for _, c := range (*program)(nil).commands() {
		if !strings.HasPrefix(c.Name, "-") && !strings.Contains(longHelp, "egressd "+c.Name) {
			t.Errorf("help.txt does not name the command %s", c.Name)
		}
	}
}

func flagNames(fs *flag.FlagSet) (names []string) {
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}
