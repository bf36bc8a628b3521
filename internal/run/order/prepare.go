package order

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"egressd/internal/run/agents"
	"egressd/internal/run/receipt/execution"
	"egressd/internal/run/receipt/format"
)

// Defaults and bounds of a run.
const (
	defaultTime = 10 * time.Minute
	maxTime     = 24 * time.Hour
	defaultLog  = 16 << 20 // bytes
	maxLog      = 256 << 20
)

// With is what a contract is prepared with.
type With struct {
	Secrets map[string]string // values by name: what was released
	Self    string            // path of launch, which the mock agent is part of
}

// Prepared is what a contract orders, ready to run.
type Prepared struct {
	Argv    []string
	Dir     string   // in the workspace; "." is its root
	Env     []string // NAME=VALUE each; NAME: the runner's own
	Timeout time.Duration
	LogMax  int64    // bytes that the program may print
	Allow   []string // rules
	Open    bool     // every host is allowed
	Hash    string   // of what runs, which command.executed holds
}

// anyExecution is an execution with every member that is known here. Two have two names.
type anyExecution struct {
	Kind    string   `json:"kind"`
	Agent   string   `json:"agent"`
	Prompt  string   `json:"prompt"`
	Command string   `json:"command"`
	Cmd     string   `json:"cmd"`
	Args    []string `json:"args"`
	Shell   string   `json:"shell"`
	Script  string   `json:"script"`
	Dir     string   `json:"cwd"`

	Env         *execution.Environment `json:"env"`
	TimeoutMS   float64                `json:"timeoutMs"`
	Log         *execution.LogBound    `json:"log"`
	LogMaxBytes float64                `json:"logMaxBytes"`
	EgressProxy *bool                  `json:"egressProxy"`
}

// Prepare makes of a contract what runs. It reads no environment and touches no file.
func Prepare(c format.Contract, w With) (Prepared, error) {
	e, err := executionOf(c)
	if err != nil {
		return Prepared{}, err
	}
	p := Prepared{Dir: ".", Open: !c.Network.DefaultDeny}
	if e.Kind != "agent" && e.Dir != "" {
		p.Dir = e.Dir
	}
	if !safeDir(p.Dir) {
		return p, fail(PolicyDenied, "execution.cwd: %q does not stay in the workspace", p.Dir)
	}
	if err := p.command(c, e, w.Self); err != nil {
		return p, err
	}
	if err := p.bounds(c, e); err != nil {
		return p, err
	}
	for _, h := range c.Network.AllowHosts {
		p.Allow = append(p.Allow, strings.TrimSuffix(strings.ToLower(strings.TrimSpace(h)), ".")+":*")
	}
	if e.EgressProxy != nil && !*e.EgressProxy {
		return p, fail(CapabilityMismatch, "execution.egressProxy is false: a program without the gate does not run here")
	}
	return p, p.environment(e.Env, w.Secrets)
}

// executionOf is what a contract says of the anyExecution, or what it means without one.
func executionOf(c format.Contract) (anyExecution, error) {
	if c.Execution == nil {
		if c.Agent.Kind == agents.Command {
			return anyExecution{Kind: "shell", Script: c.Task.Prompt}, nil
		}
		return anyExecution{Kind: "agent", Agent: c.Agent.Kind, Prompt: c.Task.Prompt}, nil
	}
	var e anyExecution
	var whole struct {
		Execution json.RawMessage `json:"execution"`
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, &whole)
	}
	if err == nil {
		dec := json.NewDecoder(bytes.NewReader(whole.Execution))
		dec.DisallowUnknownFields()
		err = dec.Decode(&e)
	}
	if err != nil {
		return e, fail(CapabilityMismatch, "execution: %v", err)
	}
	return e, nil
}

// command makes the command line and its hash.
func (p *Prepared) command(c format.Contract, e anyExecution, self string) (err error) {
	tier := Isolation(c)
	switch e.Kind {
	case "agent":
		kind, prompt := e.Agent, e.Prompt
		if kind == "" {
			kind = c.Agent.Kind
		}
		if prompt == "" {
			prompt = c.Task.Prompt
		}
		if tier != "process" {
			return fail(CapabilityMismatch, "backend %q cannot run agent execution for agent %q", tier, kind)
		}
		if p.Argv, err = agents.Argv(kind, prompt, self); err != nil {
			return fail(CapabilityMismatch, "%v", err)
		}
	case "argv":
		if e.Cmd != "" && e.Command != "" && e.Cmd != e.Command {
			return fail(CapabilityMismatch, "execution has two commands, %q and %q", e.Command, e.Cmd)
		}
		if p.Argv = append([]string{cmp.Or(e.Command, e.Cmd)}, e.Args...); p.Argv[0] == "" {
			return fail(CapabilityMismatch, "execution: argv without a command")
		}
		if tier != "process" {
			return fail(CapabilityMismatch, "expected shell execution, got argv")
		}
	case "shell":
		shell := e.Shell
		if shell == "" {
			shell = "sh"
		}
		if shell != "sh" && shell != "bash" {
			return fail(CapabilityMismatch, "execution.shell: %q is neither sh nor bash", shell)
		}
		if tier != "process" && p.Dir != "." {
			return fail(CapabilityMismatch, "isolation %q starts in the root of the workspace, not in %q", tier, p.Dir)
		}
		p.Argv = []string{shell, "-c", e.Script}
		p.Hash, err = execution.HashShell(shell, e.Script, p.Dir)
		return err
	default:
		return fail(CapabilityMismatch, "execution.kind: %q is not agent, argv or shell", e.Kind)
	}
	for _, a := range p.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return fail(CapabilityMismatch, "execution: an argument holds a NUL character")
		}
	}
	p.Hash, err = execution.HashArgv(p.Argv, p.Dir)
	return err
}

// bounds reads timeout and log. A timeout beyond the budget is the budget.
func (p *Prepared) bounds(c format.Contract, e anyExecution) error {
	p.Timeout = defaultTime
	budget := c.Budget.MaxDurationMin
	if budget != nil {
		if !(*budget > 0) || *budget > maxTime.Minutes() {
			return fail(CapabilityMismatch, "budget.maxDurationMin: %v is not within 0 and %v", *budget, maxTime.Minutes())
		}
		p.Timeout = time.Duration(*budget * float64(time.Minute))
	}
	if e.TimeoutMS != 0 {
		if !(e.TimeoutMS > 0) || e.TimeoutMS > float64(maxTime.Milliseconds()) {
			return fail(CapabilityMismatch, "execution.timeoutMs: %v is not within 0 and %v", e.TimeoutMS, maxTime.Milliseconds())
		}
		asked := time.Duration(e.TimeoutMS * float64(time.Millisecond))
		if budget == nil || asked < p.Timeout {
			p.Timeout = asked
		}
	}
	p.Timeout = max(p.Timeout, time.Millisecond)
	bytes := e.LogMaxBytes
	if e.Log != nil {
		bytes = e.Log.MaxBytes
	}
	switch {
	case bytes == 0:
		p.LogMax = defaultLog
	case !(bytes > 0) || bytes > maxLog || bytes != math.Trunc(bytes):
		return fail(CapabilityMismatch, "execution.log.maxBytes: %v is not a number from 1 to %d", bytes, maxLog)
	default:
		p.LogMax = int64(bytes)
	}
	return nil
}

// environment builds the variables, later ones win: released secrets under their own
// names, unless the execution says which variables get which; what the runner gives;
// the variables of the contract; secrets by variable.
//
// Threat: a variable of a contract is taken for the name of a secret -> a secret is
// named by the list of secrets alone; values are values.
func (p *Prepared) environment(env *execution.Environment, released map[string]string) error {
	add := func(name, value string) error {
		if !secretName.MatchString(name) || strings.IndexByte(value, 0) >= 0 {
			return fail(CapabilityMismatch, "execution.env: the variable %q cannot be set", name)
		}
		p.Env = append(p.Env, name+"="+value)
		return nil
	}
	if env == nil || env.Secrets == nil {
		for _, name := range Names(released) {
			if err := add(name, released[name]); err != nil {
				return err
			}
		}
	}
	if env == nil {
		return nil
	}
	p.Env = append(p.Env, env.Inherit...)
	for _, name := range Names(env.Vars) {
		if err := add(name, env.Vars[name]); err != nil {
			return err
		}
	}
	for _, s := range env.Secrets {
		if value, ok := released[s.SecretName]; ok { // what was not released is left out
			if err := add(s.Env, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// safeDir reports whether a directory stays in the workspace by its name. Links are
// the caller's business.
func safeDir(dir string) bool {
	if dir == "." {
		return true
	}
	if dir == "" || strings.ContainsAny(dir, "\x00\n\\") || strings.Contains(dir, "//") || path.IsAbs(dir) || len(dir) > 1 && dir[1] == ':' {
		return false
	}
	for _, s := range strings.Split(dir, "/") {
		if s == ".." {
			return false
		}
	}
	return true
}

// String tells a person what runs.
func (p Prepared) String() string {
	return fmt.Sprintf("%q in %s, %v at most", p.Argv, p.Dir, p.Timeout)
}

// Names are those of values, sorted.
func Names(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
