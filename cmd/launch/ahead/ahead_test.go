package ahead

import (
	"flag"
	"strings"
	"testing"

	"egressd/internal/run"
)

func TestPlain(t *testing.T) {
	for line, want := range map[string]bool{
		"launch":                                false,
		"launch --":                             false,
		"launch -- true":                        true,
		"launch --allow example.com -- curl -v": true,
		"launch --policy=p.yaml --quiet -- sh -c x": true,
		"launch -- program --user x":                true,
		"launch check -- true":                      false,
		"launch --isolation=env -- true":            false,
		"launch --isolation env -- true":            false,
		"launch -user dev -- true":                  false,
		"launch --publish 80 -- true":               false,
		"launch --tier hermetic -- sh -c true":      false,
		"launch --host-port=localhost:5432 -- true": false,
		"launch --help -- true":                     false,
		"launch --allow example.com":                false,
		"launch-init -- true":                       false,
	} {
		if got := plain(strings.Fields(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// values has a value for each flag that needs one; of those with a few words, one
// that needs another kind of init.
func values() map[string]string {
	return map[string]string{
		"allow": "example.com", "deny": "example.com", "preset": "npm", "policy": "p.yaml", "host": "a=192.0.2.1",
		"events": "-", "isolation": "env", "tier": "hermetic", "script": "x.sh", "limit": "commands=5", "env": "A=1",
		"name": "dev", "workdir": "/", "timeout": "90", "publish": "8080", "on-replaced": "continue", "overlay-to": "/x", "host-port": "5432", "dns-upstream": "192.0.2.1",
		"upstream-proxy": "http://192.0.2.1:3128", "upstream-bypass": "a.test", "upstream-ca": "f", "upstream-credentials": "f", "upstream-resolve": "local",
		"learn": "l.yaml", "receipt": "r.json", "receipt-key": "k.pem", "agent": "codex", "color": "never", "notify": "stderr", "write": "d", "read": "f", "hide": "f", "home": "rw", "egressd": "unix:/run/x", "user": "dev",
		"task": "t", "runtime": "node24", "image": "i", "vcpus": "2", "profile": "ephemeral", "gate-inside": "f", "keep-snapshots": "2", "snapshot-expiry": "7d", "port": "3000", "tag": "a=b", "vercel-workdir": "/w",
		"source": "snapshot:x", "vercel-team": "t", "vercel-project": "p", "vercel-token-file": "f",
	}
}

// What is decided before flags are parsed agrees with the one table of flags: a
// flag that changes which init a run needs must be in the list of plain.
func TestPlainAgreesWithFlags(t *testing.T) {
	values := values()
	new(run.Options).Flags().VisitAll(func(f *flag.Flag) {
		args := []string{"--" + f.Name}
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); !ok || !b.IsBoolFlag() {
			v, ok := values[f.Name]
			if !ok {
				t.Errorf("--%s: give it a value in this test, and add it to plain if a run with it needs an init of its own", f.Name)
				return
			}
			args = append(args, v)
		}
		args = append(args, "--", "true")
		var o run.Options
		if err := o.Parse(args); err != nil {
			t.Errorf("%q: %v", args, err)
			return
		}
		if got, want := plain(append([]string{"launch"}, args...)), o.Plain(); got != want {
			t.Errorf("%q: plain is %v, and the run that it asks for %v", args, got, want)
		}
	})
}
