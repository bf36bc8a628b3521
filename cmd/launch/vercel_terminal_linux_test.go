package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"egressd/sandbox/vercel/fake"
	"egressd/test/console"
)

// hosted is a double of the service, and what makes launch use it in a workspace.
func hosted(t *testing.T) (options console.Options) {
	t.Helper()
	api, err := fake.New(fake.Config{Token: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(api)
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Error(err)
		}
		ts.CloseClientConnections()
		ts.Close()
	})
	home := t.TempDir()
	dir := filepath.Join(home, "w")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return console.Options{Dir: dir, Env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm", "VERCEL_SANDBOX_API_URL=" + ts.URL + "/api", "VERCEL_TOKEN=dev", "VERCEL_PROJECT_ID=p",
	}}
}

// A shell in the Vercel tier and in a sandbox that is kept: as at a terminal of its
// own, and the person's is as it was when it is over, however it ends.
func TestVercelShell(t *testing.T) {
	if !netnsWorks(t) {
		t.Skip("this machine has no user and network namespaces for us")
	}
	o := hosted(t)
	path, err := exec.LookPath("launch")
	if err != nil {
		t.Fatal(err)
	}
	c := console.Start(t, o, path, "--tier", "vercel", "--name", "dev", "--no-summary", "--", "sh", "-i")
	before := c.Modes()
	c.Expect(`[$#] `)
	c.Resize(22, 77)
	c.Send("while [ \"$(stty size)\" != '22 77' ]; do :; done; stty size; tty; echo kept >/vercel/kept; echo made >made\n")
	c.Expect(`22 77\s+/dev/pts/\d`)
	c.Expect(`[$#] `)
	c.Send("sh -c 'echo run\"ni\"ng; while :; do sleep 1; done'\n")
	c.Expect(`running`)
	c.Send(console.CtrlC)
	c.Expect(`[$#] `)
	c.Send("echo go\"es\" on\n")
	c.Expect(`goes on`)
	c.Send("exit 5\n")
	if code := c.Exit(); code != 5 {
		t.Errorf("it ended with %d: %s", code, c.Shown())
	}
	if c.Modes() != before {
		t.Error("the terminal was not given back")
	}
	if b, err := os.ReadFile(filepath.Join(o.Dir, "made")); err != nil || string(b) != "made\n" {
		t.Errorf("what it made came back as %q, %v; %s", b, err, c.Shown())
	}
	c = console.Start(t, o, path, "sandbox", "sh", "dev")
	c.Expect(`[$#] `)
	c.Send("cat /vercel/kept; exit 6\n")
	c.Expect(`kept`)
	if code := c.Exit(); code != 6 {
		t.Errorf("it ended with %d: %s", code, c.Shown())
	}
	cmd := exec.CommandContext(t.Context(), path, "sandbox", "exec", "-t", "dev", "--", "true")
	cmd.Env = o.Env
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("-t without a terminal: %v, %s", err, out)
	}
}
