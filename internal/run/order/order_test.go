package order

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"egressd/internal/run/receipt/execution"
	"egressd/internal/run/receipt/format"
)

// contract is a good one; change makes it another, in JSON.
func contract(t *testing.T, change func(m map[string]any)) format.Contract {
	t.Helper()
	c := format.Contract{
		Version: format.VersionContract, RunID: "run_1", ExpiresAt: "2030-01-01T00:00:00.000Z", Agent: format.Agent{Kind: "command"}, Task: format.Task{Prompt: "make"},
		Runner: format.Pool{Pool: "default"}, Network: format.Network{DefaultDeny: true, AllowHosts: []string{"API.example.com."}}, Secrets: []format.Secret{},
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(m)
	}
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	c, err = Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func with(e map[string]any) func(map[string]any) {
	return func(m map[string]any) { m["execution"] = e }
}

func TestPrepare(t *testing.T) {
	secrets := map[string]string{"TOKEN": "value"}
	for _, row := range []struct {
		name   string
		change func(map[string]any)
		argv   string
		env    []string
		time   time.Duration
	}{
		{"nothing said", nil, "sh|-c|make", []string{"TOKEN=value"}, defaultTime},
		{"an agent", func(m map[string]any) { m["agent"] = map[string]any{"kind": "codex"} }, "codex|exec|--skip-git-repo-check|make", []string{"TOKEN=value"}, defaultTime},
		{"both names of a command", with(map[string]any{"kind": "argv", "cmd": "ls", "command": "ls", "args": []string{"-l"}}), "ls|-l", []string{"TOKEN=value"}, defaultTime},
		{"a budget bounds the timeout", func(m map[string]any) {
			m["budget"] = map[string]any{"maxDurationMin": 1, "maxSpendUsd": 3}
			m["execution"] = map[string]any{"kind": "shell", "script": "x", "timeoutMs": 3_600_000}
		}, "sh|-c|x", []string{"TOKEN=value"}, time.Minute},
		{"later variables win", with(map[string]any{"kind": "shell", "shell": "bash", "script": "x", "timeoutMs": 1500, "env": map[string]any{
			"inherit": []string{"LANG"}, "vars": map[string]any{"B": "2", "A": "__WARRANT_SECRET__:TOKEN"},
			"secrets": []any{map[string]any{"env": "KEY", "secretName": "TOKEN"}, map[string]any{"env": "OTHER", "secretName": "NOT_RELEASED"}},
		}}), "bash|-c|x", []string{"LANG", "A=__WARRANT_SECRET__:TOKEN", "B=2", "KEY=value"}, 1500 * time.Millisecond},
	} {
		p, err := Prepare(contract(t, row.change), With{Secrets: secrets, Self: "launch"})
		if err != nil || strings.Join(p.Argv, "|") != row.argv || !slices.Equal(p.Env, row.env) || p.Timeout != row.time || len(p.Hash) != 64 {
			t.Errorf("%s: %v %v %v %v", row.name, p, p.Env, p.Hash, err)
		}
		if !slices.Equal(p.Allow, []string{"api.example.com:*"}) || p.Open {
			t.Error(row.name, p.Allow)
		}
	}
}

// The hash is that of the command line alone.
func TestHash(t *testing.T) {
	a, err := Prepare(contract(t, with(map[string]any{"kind": "argv", "command": "ls", "timeoutMs": 5})), With{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := execution.HashArgv([]string{"ls"}, ".")
	if err != nil || a.Hash != b {
		t.Error(a.Hash, b, err)
	}
}

func TestRefused(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(map[string]any)
		class  string
	}{
		{"a member that is not known", with(map[string]any{"kind": "shell", "script": "x", "readOnly": true}), CapabilityMismatch},
		{"another kind", with(map[string]any{"kind": "container"}), CapabilityMismatch},
		{"no command", with(map[string]any{"kind": "argv"}), CapabilityMismatch},
		{"two commands", with(map[string]any{"kind": "argv", "cmd": "a", "command": "b"}), CapabilityMismatch},
		{"NUL", with(map[string]any{"kind": "argv", "cmd": "a", "args": []string{"b\x00c"}}), CapabilityMismatch},
		{"another shell", with(map[string]any{"kind": "shell", "shell": "zsh", "script": "x"}), CapabilityMismatch},
		{"without the gate", with(map[string]any{"kind": "shell", "script": "x", "egressProxy": false}), CapabilityMismatch},
		{"a variable that is none", with(map[string]any{"kind": "shell", "script": "x", "env": map[string]any{"vars": map[string]any{"A=B": "c"}}}), CapabilityMismatch},
		{"no time", with(map[string]any{"kind": "shell", "script": "x", "timeoutMs": -1}), CapabilityMismatch},
		{"too much log", with(map[string]any{"kind": "shell", "script": "x", "log": map[string]any{"maxBytes": 1e12}}), CapabilityMismatch},
		{"half a byte", with(map[string]any{"kind": "shell", "script": "x", "log": map[string]any{"maxBytes": 1.5}}), CapabilityMismatch},
		{"an agent in the hermetic tier", func(m map[string]any) { m["isolation"], m["agent"] = "hermetic", map[string]any{"kind": "codex"} }, CapabilityMismatch},
		{"up", with(map[string]any{"kind": "shell", "script": "x", "cwd": "a/../../b"}), PolicyDenied},
		{"absolute", with(map[string]any{"kind": "shell", "script": "x", "cwd": "/etc"}), PolicyDenied},
		{"a drive", with(map[string]any{"kind": "shell", "script": "x", "cwd": "C:x"}), PolicyDenied},
	} {
		_, err := Prepare(contract(t, row.change), With{Self: "launch"})
		var f *Failure
		if !errors.As(err, &f) || f.Class != row.class {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestCheck(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stranger := format.Held(private).PublicPEM()
	good := Terms{Pool: "default", Isolations: []string{"process"}, Inherit: []string{"LANG"}, Now: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)}
	if err := Check(contract(t, nil), good); err != nil {
		t.Error(err)
	}
	for _, row := range []struct {
		name   string
		change func(map[string]any)
		terms  func(*Terms)
		class  string
	}{
		{"not signed by the plane", nil, func(t *Terms) { t.Plane = stranger }, AttestationFailed},
		{"expired", nil, func(t *Terms) { t.Now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }, PolicyDenied},
		{"without an end", func(m map[string]any) { m["expiresAt"] = "" }, nil, AttestationFailed},
		{"another pool", nil, func(t *Terms) { t.Pool = "gpu" }, PolicyDenied},
		{"a tier that is not here", func(m map[string]any) { m["isolation"] = "vercel-sandbox" }, nil, CapabilityMismatch},
		{"every host", func(m map[string]any) { m["network"] = map[string]any{"defaultDeny": false, "allowHosts": []string{}} }, nil, PolicyDenied},
		{"no network said", func(m map[string]any) { delete(m, "network") }, nil, PolicyDenied},
		{"a host that is a rule", func(m map[string]any) {
			m["network"] = map[string]any{"defaultDeny": true, "allowHosts": []string{"raw:a.test:443"}}
		}, nil, PolicyDenied},
		{"the runner's own variables", with(map[string]any{"kind": "shell", "script": "x", "env": map[string]any{"inherit": []string{"AWS_SECRET_ACCESS_KEY"}}}), nil, PolicyDenied},
		{"a secret that is no variable", func(m map[string]any) { m["secrets"] = []any{map[string]any{"name": "a b", "scope": "x"}} }, nil, SecretDenied},
	} {
		terms := good
		if row.terms != nil {
			row.terms(&terms)
		}
		err := Check(contract(t, row.change), terms)
		var f *Failure
		if !errors.As(err, &f) || f.Class != row.class {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestRead(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":         ``,
		"no object":       `[]`,
		"a name twice":    `{"version":"warrant.contract.v1","runId":"a","runId":"b"}`,
		"more behind":     `{"version":"warrant.contract.v1","runId":"a"} {}`,
		"another version": `{"version":"warrant.contract.v2","runId":"a"}`,
		"out of the way":  `{"version":"warrant.contract.v1","runId":"../a"}`,
		"an empty name":   `{"version":"warrant.contract.v1","runId":""}`,
		"too long":        `{"version":"warrant.contract.v1","runId":"a","x":"` + strings.Repeat("x", maxContract) + `"}`,
	} {
		if c, err := Read([]byte(text)); err == nil {
			t.Errorf("%s: %v", name, c.RunID)
		}
	}
}
