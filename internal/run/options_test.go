package run

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
)

// What is kept of the flags makes the same sandbox again, and holds no value of a
// variable.
func TestSaved(t *testing.T) {
	line := []string{
		"--name", "dev", "--allow", "a.test", "-env=TOKEN=hunter2", "--env", "HOME", "--quiet", "--nested=false",
		"--learn=l.yaml", "--receipt", "r.json", "--script", "x.sh", "--timeout", "90", "--", "make", "--env", "X=1",
	}
	var o Options
	if err := o.Parse(line); err != nil {
		t.Fatal(err)
	}
	want := []string{"--allow=a.test", "--env=TOKEN", "--env=HOME", "--quiet=true", "--nested=false", "--timeout=90"}
	if got := o.Keeping.saved(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.Equal(o.Argv, []string{"make", "--env", "X=1"}) {
		t.Errorf("program %q", o.Argv)
	}
}

func TestParse(t *testing.T) {
	var o Options
	if err := o.Parse([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Error(err)
	}
	if err := new(Options).Parse([]string{"make"}); err == nil || !strings.Contains(err.Error(), "write launch -- make") {
		t.Error(err)
	}
}

// Flags that do not go together are refused, by name.
func TestValidate(t *testing.T) {
	for line, want := range map[string]string{
		"-- true":                                 "",
		"--tier hermetic -- sh -c true":           "",
		"--tier vercel -- true":                   "",
		"--tier vercel --name dev --keep -- true": "",
		"":                                     "no program",
		"--tier vercel":                        "no program",
		"--tier magic -- true":                 "process, hermetic or vercel",
		"--isolation none -- true":             "netns or env",
		"--isolation env --publish 80 -- true": "--publish and --host-port",
		"--isolation env --egressd unix:/x -- true":                 "no doors to hand over",
		"--egressd /x -- true":                                      "write unix:PATH",
		"--egressd unix:/x --dns-upstream 1.1.1.1 -- true":          "leave it out",
		"--on-replaced stop -- true":                                "end or continue",
		"--isolation env --on-replaced end -- true":                 "nothing is protected",
		"--tier hermetic --on-replaced end -- sh -c true":           "--on-replaced has no use",
		"--overlay -- true":                                         "",
		"--overlay-to x -- true":                                    "",
		"--isolation env --overlay -- true":                         "--overlay is for --isolation netns",
		"--tier hermetic --overlay-to x -- sh -c true":              "--overlay-to has no use",
		"--tier vercel --overlay -- true":                           "--overlay has no use",
		"--tier hermetic --nested -- sh -c true":                    "--nested has no use with --tier hermetic",
		"--tier vercel --home rw -- true":                           "--home has no use with --tier vercel",
		"--isolation env --write x -- true":                         "--write is for --isolation netns",
		"--tier vercel --learn x -- true":                           "--learn has no use with --tier vercel",
		"--runtime node24 -- true":                                  "--runtime is for --tier vercel",
		"--tier vercel --keep -- true":                              "--keep needs a --name",
		"--tier vercel --name a.b -- true":                          "letters, digits, - and _",
		"--tier vercel --runtime a --image b -- true":               "give one",
		"--tier vercel --source git:ftp://x -- true":                "--source",
		"--tier vercel --source git:https://a:b@c/d -- true":        "password",
		"--allow localhost:3000 -- true":                            "write --host-port localhost:3000",
		"--allow a.test,localhost -- true":                          "write --host-port localhost:PORT",
		"--allow host.docker.internal:3000 -- true":                 "write --host-port 3000, and let the program use host.internal:3000",
		"--allow localhost:3000 --host localhost=127.0.0.1 -- true": "",
		"--isolation env --allow localhost:3000 -- true":            "",
		"--allow localhost.example.com -- true":                     "",
		"--allow -- true":                                           "a rule is missing",
		"--alow x -- true":                                          "did you mean --allow?",
		"--name ../x -- true":                                       "--name",
		"--agent codex fix":                                         "",
		"--agent codex --tier vercel -- fix":                        "",
		"--agent command --tier hermetic true":                      "",
		"--agent codex":                                             "one prompt, in quotes",
		"--agent codex fix it":                                      "one prompt, in quotes",
		"--agent pi fix":                                            "session of its own",
		"--agent gpt fix":                                           "is no agent that launch knows",
		"--agent codex --tier hermetic fix":                         "a script runs no program",
		"--agent mock --tier vercel fix":                            "which is not sent",
		"--receipt r.json -- true":                                  "",
		"--receipt r.json --tier hermetic -- sh -c true":            "",
		"--receipt r.json --tier vercel -- true":                    "does not see every flow",
		"--receipt r.json --isolation env -- true":                  "around the gate",
		"--receipt r.json --egressd unix:/x -- true":                "exclude each other",
		"--receipt-key k -- true":                                   "--receipt-key is for --receipt FILE",
	} {
		var o Options
		err := o.Parse(strings.Fields(line))
		if err == nil {
			err = o.Validate()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
