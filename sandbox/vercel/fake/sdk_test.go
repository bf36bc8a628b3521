//go:build system

package fake

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"egressd/test/console"
)

// sdks are the official SDKs that the double must be good enough for, by the
// names that they are installed under.
var sdks = map[string]string{"sdk2": "@vercel/sandbox@2.2.0", "sdk3": "@vercel/sandbox@3.5.0"}

// sdkDir reports where the SDKs are: where VERCEL_SDKS says, as sdk2 and sdk3,
// or in a directory that they are installed in from npm.
func sdkDir(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here", tool)
		}
	}
	if dir := os.Getenv("VERCEL_SDKS"); dir != "" {
		return dir
	}
	dir := t.TempDir()
	args := []string{"install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", dir}
	for name, pkg := range sdks {
		args = append(args, name+"@npm:"+pkg)
	}
	args = append(args, "sandbox@4.5.0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "npm", args...).CombinedOutput(); err != nil {
		t.Skipf("the SDKs cannot be had: %v\n%.1000s", err, out)
	}
	return dir
}

// TestSDK drives the real SDKs against the double, through everything that they
// can do with a sandbox.
func TestSDK(t *testing.T) {
	dir := sdkDir(t)
	needMachines(t)
	driver, err := filepath.Abs("testdata/sdk/driver.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for name := range sdks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			cfg := o.config("origin.test")
			cfg.Token, cfg.TeamID, cfg.ProjectID = "token", "team_x", "prj_x"
			d := newDouble(t, cfg)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "node", driver, dir, name, d.url, o.port)
			cmd.Dir = t.TempDir()
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "NODE_NO_WARNINGS=1"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
			if _, missed, _ := strings.Cut(strings.TrimSpace(string(out)), "; not:"); missed != "" {
				t.Errorf("of the SDK was not driven:%s", missed)
			}
			compareTraffic(t, strings.TrimPrefix(sdks[name], "@vercel/sandbox@"), d.Requests())
		})
	}
}

// TestCLI drives the official command line: commands, and a shell at a terminal.
func TestCLI(t *testing.T) {
	dir := sdkDir(t)
	cli := filepath.Join(dir, "node_modules", "sandbox", "bin", "sandbox.mjs")
	if _, err := os.Stat(cli); err != nil {
		t.Skipf("no command line here: %v", err)
	}
	needMachines(t)
	preload, err := filepath.Abs("testdata/sdk/preload.mjs")
	if err != nil {
		t.Fatal(err)
	}
	d := newDouble(t, Config{Token: "token", ProjectID: "prj_x"})
	o := console.Options{Dir: t.TempDir()}
	o.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + o.Dir, "TERM=xterm", "NODE_NO_WARNINGS=1", "NO_COLOR=1", "NODE_OPTIONS=--import=" + preload, "DOUBLE=" + d.url,
		"VERCEL_TELEMETRY_DISABLED=1", "SANDBOX_SKIP_VERSION_CHECK=1", "CI=1",
	}
	argv := func(args string) []string {
		name, rest, _ := strings.Cut(args, " -- ")
		all := append([]string{"node", cli}, strings.Fields(name)...)
		all = append(all, "--token=token", "--project=prj_x", "--scope=team_x")
		if rest != "" {
			all = append(append(all, "--"), strings.Fields(rest)...)
		}
		return all
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "f"), []byte("copied\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	snapshot := ""
	for _, tt := range []struct {
		args, want string
		code       int
	}{
		{"create --name cli-a --timeout 5m --tag k=v", "cli-a", 0},
		{"list", "cli-a", 0},
		{"list --all --tag k=v", "cli-a", 0},
		{"exec cli-a -- sh -c pwd", "/vercel", 0},
		{"exec cli-a -- ls /no/such", "No such file", 2},
		{"exec --env A=b cli-a -- printenv A", "b", 0},
		{"copy f cli-a:/tmp/f", "", 0},
		{"exec cli-a -- cat /tmp/f", "copied", 0},
		{"copy cli-a:/tmp/f g", "", 0},
		{"config list cli-a", "300000|5m|5 min", 0},
		{"sessions list cli-a", "running", 0},
		{"snapshot --stop cli-a", "snap_\\w+", 0},
		{"snapshots list", "snap_", 0},
		{"snapshots get SNAP", "SNAP", 0},
		{"fork cli-a --name cli-b", "cli-b", 0},
		{"exec cli-b -- cat /tmp/f", "copied", 0},
		{"stop cli-b", "", 0},
		{"remove cli-b", "", 0},
		{"run --rm -- echo ran", "ran", 0},
		{"snapshots delete SNAP", "", 0},
	} {
		args := strings.ReplaceAll(tt.args, "SNAP", snapshot)
		all := argv(args)
		cmd := exec.CommandContext(t.Context(), all[0], all[1:]...)
		cmd.Dir, cmd.Env = o.Dir, o.Env
		out, _ := cmd.CombinedOutput() // the code says it
		if !regexp.MustCompile(strings.ReplaceAll(tt.want, "SNAP", snapshot)).Match(out) || cmd.ProcessState.ExitCode() != tt.code {
			t.Errorf("%s: got %d, want %d and %q\n%s", args, cmd.ProcessState.ExitCode(), tt.code, tt.want, out)
		}
		if found := regexp.MustCompile(`snap_\w+`).Find(out); found != nil && snapshot == "" {
			snapshot = string(found)
		}
	}
	if b, err := os.ReadFile(filepath.Join(o.Dir, "g")); err != nil || string(b) != "copied\n" {
		t.Errorf("what was copied there and back: %q, %v", b, err)
	}
	c := console.Start(t, o, argv("create --name cli-c --connect")...)
	c.Expect(`▲ .*/vercel/`)
	c.Resize(22, 77)
	c.Send("while [ \"$(stty size)\" != '22 77' ]; do :; done; echo res''ized; exit 5\r")
	c.Expect("resized")
	if code := c.Exit(); code != 5 {
		t.Errorf("the shell ended with %d: %s", code, c.Shown())
	}
}
