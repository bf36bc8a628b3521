package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"egressd/internal/run/plane/fake"
	"egressd/internal/run/receipt"
	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/execution"
	"egressd/internal/run/receipt/format"
	"egressd/internal/run/workspace"
)

// plant is a control plane and what a runner needs to serve it.
type plant struct {
	*testing.T
	plane *fake.Plane
	url   string
	key   format.Held
	dir   string
	prog  string // launch
}

// newPlant starts a plane with which this goes wrong; nil: nothing.
func newPlant(t *testing.T, fault func(method, path string) fake.Fault) *plant {
	t.Helper()
	if !netnsWorks(t) {
		t.Skip("no network namespaces here")
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &plant{T: t, key: format.Held(private), dir: t.TempDir()}
	p.plane = fake.New(p.key)
	p.plane.Fault = fault
	srv := httptest.NewServer(p.plane)
	srv.Config.ErrorLog = nil
	t.Cleanup(srv.Close)
	p.url = srv.URL
	p.prog = filepath.Join(p.dir, "launch")
	self, err := os.Executable()
	if err == nil {
		if err = os.Link(self, p.prog); err != nil {
			err = copyFile(self, p.prog)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, "plane.pem"), []byte(p.key.PublicPEM()), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// contract is one that is good for this plant, unsigned.
func (p *plant) contract(id string, e *execution.Execution) format.Contract {
	now := time.Now()
	return format.Contract{
		Version: format.VersionContract, RunID: id, IssuedAt: chain.Stamp(now.Add(-time.Minute)), ExpiresAt: chain.Stamp(now.Add(time.Hour)),
		Issuer: format.Issuer{KeyID: format.KeyID(p.key.PublicPEM()), Role: "plane"}, RequestedBy: format.Actor{Kind: "human", ID: "alice"},
		Agent: format.Agent{Kind: "command"}, Task: format.Task{Prompt: "echo task"}, Runner: format.Pool{Pool: "default"},
		Workspace: format.Manifest{Version: format.VersionManifest, UntrackedFiles: []format.ManifestFile{}, DeniedPatterns: []string{}, DeniedPaths: []string{}},
		Secrets:   []format.Secret{}, Network: format.Network{DefaultDeny: true, AllowHosts: []string{}}, Disclosure: "none", Execution: e,
	}
}

func (p *plant) order(c format.Contract, secrets map[string]string) {
	p.Helper()
	if err := c.Sign(p.Context(), p.key, format.SignerPlane); err != nil {
		p.Fatal(err)
	}
	p.plane.Order(c, secrets)
}

// proc is a runner under way.
type proc struct {
	*exec.Cmd
	said *bytes.Buffer
}

// start starts a runner, which the test ends at the latest.
func (p *plant) start(flags ...string) *proc {
	p.Helper()
	args := append([]string{"runner", "--plane", p.url, "--enroll-token", fake.EnrollToken, "--data", filepath.Join(p.dir, "runner"), "--plane-key", filepath.Join(p.dir, "plane.pem")}, flags...)
	r := &proc{exec.CommandContext(p.Context(), p.prog, args...), new(bytes.Buffer)}
	r.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "ANTHROPIC_API_KEY=the-runners-own"}
	r.Stderr, r.Stdout = r.said, r.said
	r.WaitDelay = 10 * time.Second
	if err := r.Start(); err != nil {
		p.Fatal(err)
	}
	return r
}

// drain asks a runner to end, and waits for it.
func (p *plant) drain(r *proc) string {
	p.Helper()
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		p.Fatal(err)
	}
	if err := r.Wait(); err != nil {
		p.Errorf("the runner: %v", err)
	}
	return r.said.String()
}

// ended waits for a run's receipt, and holds it against the strict verifier.
func (p *plant) ended(id string) (status string, b format.Bundle) {
	p.Helper()
	var text []byte
	p.until(id+" has no receipt", func() bool {
		var err error
		if text, err = p.plane.Bundle(id); err != nil {
			p.Fatal(err)
		}
		return text != nil
	})
	if problems := receipt.Verify(text, receipt.Options{Strict: true, Pinned: nil}); len(problems) > 0 {
		p.Errorf("%s: %s", id, strings.Join(problems, "; "))
	}
	if err := json.Unmarshal(text, &b); err != nil {
		p.Fatal(err)
	}
	return b.Receipt.Status, b
}

// until waits for what a change of the plane brings.
func (p *plant) until(otherwise string, done func() bool) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 2*time.Minute)
	defer cancel()
	for {
		changed := p.plane.Changed()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			p.Fatal(otherwise)
		}
	}
}

// log is what a run printed.
func (p *plant) log(b format.Bundle) string {
	for _, e := range b.Events {
		var body struct{ Type, Kind, Hash string }
		if json.Unmarshal(e.Event, &body) == nil && body.Type == "artifact.created" && body.Kind == "log" {
			return string(p.plane.Content(body.Hash))
		}
	}
	return ""
}

// failure is how a run failed.
func failure(b format.Bundle) (class, message string) {
	var body struct{ Type, Failure, Message string }
	if json.Unmarshal(b.Events[len(b.Events)-1].Event, &body) != nil || body.Type != "run.failed" {
		return "", ""
	}
	return body.Failure, body.Message
}

// Every kind of execution ends in a receipt that the plane takes; what was ordered
// wrongly, in one that says why.
func TestRunner(t *testing.T) {
	p := newPlant(t, nil)
	rows := []struct {
		id      string
		change  func(*format.Contract)
		secrets map[string]string
		class   string // of the failure; "": it completes
		log     string // is in what it printed
	}{
		{id: "implied", log: "task\n"},
		{id: "shell", change: exec1(execution.Execution{Kind: "shell", Script: "echo $0 $KEY; exit 0", Shell: "bash"}), log: "bash\n"},
		{id: "argv", change: exec1(execution.Execution{Kind: "argv", Command: "echo", Args: []string{"a  b", "c"}}), log: "a  b c\n"},
		{id: "mock", change: exec1(execution.Execution{Kind: "agent", Agent: "mock", Prompt: "use the network"}), log: "network probe status: 403"},
		{id: "mock-fails", change: exec1(execution.Execution{Kind: "agent", Agent: "mock", Prompt: "fail"}), class: "session_failed", log: "failing as instructed"},
		{id: "hermetic", change: func(c *format.Contract) {
			c.Isolation, c.Execution = "hermetic", &execution.Execution{Kind: "shell", Script: "echo inter{a,b}"}
		}, log: "intera interb"},
		{id: "hermetic-argv", change: func(c *format.Contract) {
			c.Isolation, c.Execution = "hermetic", &execution.Execution{Kind: "argv", Command: "true"}
		}, class: "capability_mismatch"},
		{id: "pi", change: exec1(execution.Execution{Kind: "agent", Agent: "pi", Prompt: "x"}), class: "capability_mismatch"},
		{id: "microvm", change: func(c *format.Contract) { c.Isolation = "vercel-sandbox" }, class: "capability_mismatch"},
		{id: "missing", change: exec1(execution.Execution{Kind: "argv", Command: "/no/such/program"}), class: "session_failed"},
		{id: "slow", change: exec1(execution.Execution{Kind: "shell", Script: "sleep 600", TimeoutMS: 50}), class: "budget_exceeded"},
		{id: "loud", change: exec1(execution.Execution{Kind: "shell", Script: "while :; do echo yyyyyyyyyyyyyyyy; done", Log: &execution.LogBound{MaxBytes: 1000}}), class: "budget_exceeded", log: "yyyy"},
		{id: "outside", change: exec1(execution.Execution{Kind: "shell", Script: "true", Dir: "a/../.."}), class: "policy_denied"},
		{id: "open", change: func(c *format.Contract) { c.Network.DefaultDeny = false }, class: "policy_denied"},
		{id: "inherits", change: func(c *format.Contract) {
			c.Execution = &execution.Execution{Kind: "shell", Script: "env", Env: &execution.Environment{Inherit: []string{"ANTHROPIC_API_KEY"}}}
		}, class: "policy_denied"},
		{id: "secret", secrets: map[string]string{"TOKEN": "s3cr3t-v4lue"}, change: exec1(execution.Execution{Kind: "shell", Script: "echo ${#TOKEN} $TOKEN; printf %s $TOKEN | base64; env"}), log: "12 [REDACTED:TOKEN]\n[REDACTED:TOKEN]"},
	}
	for _, row := range rows {
		c := p.contract("run_"+row.id, nil)
		if row.change != nil {
			row.change(&c)
		}
		for name := range row.secrets {
			c.Secrets = append(c.Secrets, format.Secret{Name: name, Scope: "run"})
		}
		p.order(c, row.secrets)
	}
	r := p.start("--concurrency", "3")
	for _, row := range rows {
		_, b := p.ended("run_" + row.id)
		class, message := failure(b)
		log := p.log(b)
		if class != row.class || !strings.Contains(log, row.log) {
			t.Errorf("%s: %s %q, printed %q", row.id, class, message, log)
		}
		if strings.Contains(log, "the-runners-own") || strings.Contains(log, "s3cr3t") {
			t.Errorf("%s has what is not its own: %s", row.id, log)
		}
	}
	if said := p.drain(r); !strings.Contains(said, "lost=0") || strings.Contains(said, "s3cr3t") {
		t.Error(said)
	}
	left, err := filepath.Glob(filepath.Join(p.dir, "runner", "jobs", "*"))
	if len(left) > 0 || err != nil {
		t.Error("left:", left, err)
	}
}

func exec1(e execution.Execution) func(*format.Contract) {
	return func(c *format.Contract) { c.Execution = &e }
}

// A contract that somebody has changed since it was signed, or that is for other
// runners, does not run, and the receipt that says so is kept where the plane does not
// take it.
func TestRunnerForged(t *testing.T) {
	p := newPlant(t, nil)
	touched := filepath.Join(p.dir, "touched")
	c := p.contract("run_forged", &execution.Execution{Kind: "shell", Script: "echo mine"})
	if err := c.Sign(t.Context(), p.key, format.SignerPlane); err != nil {
		t.Fatal(err)
	}
	c.Execution = &execution.Execution{Kind: "shell", Script: "touch " + touched}
	p.plane.Order(c, nil)
	c = p.contract("run_pool", &execution.Execution{Kind: "shell", Script: "touch " + touched})
	c.Runner.Pool = "other"
	p.order(c, nil)
	r := p.start("--policy", p.everything())
	p.until("the runs were not claimed", func() bool { return p.plane.Spent("run_forged") && p.plane.Status("run_pool") == "claimed" })
	said := p.drain(r)
	text, err := os.ReadFile(filepath.Join(p.dir, "runner", "undelivered", "run_forged.json"))
	if err != nil || !bytes.Contains(text, []byte("attestation_failed")) {
		t.Errorf("kept: %v %s", err, text)
	}
	if _, err := os.Stat(touched); err == nil || !strings.Contains(said, "lost=2") || !strings.Contains(said, "other") {
		t.Errorf("%v\n%s", err, said)
	}
}

// everything is a policy that allows any host: contracts count alone.
func (p *plant) everything() string {
	p.Helper()
	name := filepath.Join(p.dir, "policy.yaml")
	if err := os.WriteFile(name, []byte("allow: [\"0.0.0.0/0:*\"]\n"), 0o600); err != nil {
		p.Fatal(err)
	}
	return name
}

// A workspace comes from the plane, and the diff goes there.
func TestRunnerWorkspace(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	p := newPlant(t, nil)
	tree := filepath.Join(p.dir, "tree")
	for _, args := range [][]string{{"init", "-q", tree}, {"-C", tree, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"}} {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	if err := os.WriteFile(filepath.Join(tree, "notes"), []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	capture := filepath.Join(p.dir, "capture")
	got, err := workspace.Capture(t.Context(), workspace.Source{Dir: tree, Untracked: []string{"notes"}}, capture)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := filepath.Glob(filepath.Join(capture, "blobs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range blobs {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p.plane.Blob(data)
	}
	c := p.contract("run_tree", &execution.Execution{Kind: "shell", Script: "cat notes; echo after >>notes; mkdir d; printf '\\377\\000' >d/binary"})
	c.Workspace = got.Manifest
	p.order(c, nil)
	lost := p.contract("run_no_blob", nil)
	lost.Workspace = got.Manifest
	lost.Workspace.BundleHash = strings.Repeat("0", 64)
	p.order(lost, nil)
	r := p.start()
	status, b := p.ended("run_tree")
	diff := string(p.plane.Content(b.Receipt.WorkspaceOut.DiffHash))
	if status != "completed" || p.log(b) != "before\n" || !strings.Contains(diff, "+after") || !strings.Contains(diff, "d/binary") {
		_, why := failure(b)
		t.Errorf("%s %s: %q\n%s", status, why, p.log(b), diff)
	}
	if m, err := canonical.Hash(got.Manifest); err != nil || b.Receipt.WorkspaceIn.ManifestHash != m {
		t.Error("another workspace", err)
	}
	_, b = p.ended("run_no_blob")
	if class, why := failure(b); class != "transfer_failed" {
		t.Error(class, why)
	}
	p.drain(r)
}

// Answers get lost, the plane is busy and away, the runner and the process of a run are
// killed: every run that was claimed ends in one receipt.
func TestRunnerStorm(t *testing.T) {
	var count atomic.Int64
	p := newPlant(t, func(_, path string) fake.Fault {
		if path == "/v1/claims" || path == "/v1/runners/enroll" {
			return fake.None
		}
		return []fake.Fault{fake.None, fake.Lost, fake.Dead, fake.Busy, fake.None}[count.Add(1)%5]
	})
	var ids []string
	for i := range 6 {
		id := "run_storm" + string(rune('a'+i))
		ids = append(ids, id)
		p.order(p.contract(id, &execution.Execution{Kind: "shell", Script: "echo hello; sleep 600", TimeoutMS: 60_000}), nil)
	}
	r := p.start("--concurrency", "6")
	p.claimed(ids)
	if err := syscall.Kill(p.child(r.Process.Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := r.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait()
	r = p.start("--concurrency", "2")
	for _, id := range ids {
		status, b := p.ended(id)
		if class, why := failure(b); status != "failed" || class != "session_failed" || why == "" {
			t.Errorf("%s: %s %s %q", id, status, class, why)
		}
		if n := len(b.Events); n < 3 || slices.ContainsFunc(b.Events[:n-1], func(e chain.Entry) bool { return bytes.Contains(e.Event, []byte("run.failed")) }) {
			t.Errorf("%s: %d events", id, n)
		}
	}
	p.drain(r)
}

// claimed waits until the programs of runs are under way.
func (p *plant) claimed(ids []string) {
	p.Helper()
	p.until("the runs do not begin", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return p.plane.Status(id) != "running" })
	})
}

// child is a process that pid has started.
func (p *plant) child(pid int) int {
	p.Helper()
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		p.Fatal(err)
	}
	for _, name := range tasks {
		text, _ := os.ReadFile(name) // the thread may be gone
		if f := strings.Fields(string(text)); len(f) > 0 {
			if child, err := strconv.Atoi(f[0]); err == nil {
				return child
			}
		}
	}
	p.Fatal("the runner has started nothing")
	return 0
}
