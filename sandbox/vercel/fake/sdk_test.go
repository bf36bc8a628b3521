//go:build system

package fake

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
			compareTraffic(t, strings.TrimPrefix(sdks[name], "@vercel/sandbox@"), d.Requests())
		})
	}
}
