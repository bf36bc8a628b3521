//go:build system

package containers

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const units = "../../deploy/systemd"

// The units are what systemd understands, without a warning, and leave the
// daemon little to misuse.
func TestSystemdUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed: apt-get install systemd")
	}
	r := &rig{dir: t.TempDir()}
	root := r.dir
	for _, dir := range []string{"/etc/systemd/system", "/usr/local/bin", "/bin"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(units + "/egressd*.*")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	var names []string
	for _, f := range files {
		if strings.HasSuffix(f, ".d") {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "etc/systemd/system", filepath.Base(f)), string(data))
		names = append(names, filepath.Base(f))
	}
	// The distribution's own units, which ours refer to, and programs to point at.
	for _, argv := range [][]string{
		{"mkdir", "-p", root + "/usr/lib/systemd"},
		{"cp", "-a", "/usr/lib/systemd/system", root + "/usr/lib/systemd/"},
		{"cp", "/bin/true", root + "/usr/local/bin/egressd"},
		{"cp", "/bin/true", root + "/bin/kill"},
	} {
		if err := r.cmd(argv[0], argv[1:]...).run(); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"verify", "--root=" + root, "--man=no", "--recursive-errors=no"}, names...)
	stdout, stderr, err := r.cmd("systemd-analyze", args...).both()
	if err != nil || strings.Contains(stdout+stderr, "egressd") {
		t.Errorf("systemd-analyze verify: %v\n%s%s", err, stdout, stderr)
	}
	args = []string{"security", "--offline=yes", "--root=" + root, "--no-pager", "egressd.service"}
	out, err := r.cmd("systemd-analyze", args...).output()
	if err != nil {
		t.Fatal(err)
	}
	score := regexp.MustCompile(`exposure level for egressd.service: ([0-9.]+)`).FindStringSubmatch(out)
	if score == nil {
		t.Fatalf("no exposure level in\n%s", out)
	}
	if level, err := strconv.ParseFloat(score[1], 64); err != nil || level > 1.6 {
		t.Errorf("exposure level %s, at most 1.6:\n%s", score[1], out)
	}
}

// The names of the socket units are those that egressd looks for, so that it
// serves what systemd opened and opens nothing itself.
func TestSystemdSockets(t *testing.T) {
	activate, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("systemd-socket-activate is not installed: apt-get install systemd")
	}
	dir := t.TempDir()
	egressd := filepath.Join(dir, "egressd")
	r := &rig{dir: dir}
	if err := r.cmd("go", "build", "-buildvcs=false", "-o", egressd, "../../cmd/egressd").run(); err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`(?m)^FileDescriptorName=(.+)$`)
	var fds []string
	for _, unit := range []string{"egressd.socket", "egressd-admin.socket", "egressd-control.socket"} {
		data, err := os.ReadFile(filepath.Join(units, unit))
		if err != nil {
			t.Fatal(err)
		}
		m := name.FindSubmatch(data)
		if m == nil {
			t.Fatalf("%s names no descriptor", unit)
		}
		fds = append(fds, string(m[1]))
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	admin, control := filepath.Join(dir, "admin.sock"), filepath.Join(dir, "control.sock")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, activate, "--listen="+addr, "--listen="+admin, "--listen="+control, "--fdname="+strings.Join(fds, ":"),
		egressd, "--policy", "../../deploy/image/policy.yaml", "--log-format", "json")
	cmd.Env = r.cmd("").env
	var logs strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt) // drained
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(logs.String())
		}
	}()
	// The first connection starts egressd, as with systemd.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr})}}
	eventually(t, "egressd answers on the passed socket", readyTime, func() bool {
		resp, err := client.Get("http://" + deniedHost + "/")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusForbidden
	})
	if out, err := r.cmd(egressd, "healthcheck", "--admin", "unix:"+admin).output(); err != nil {
		t.Error(out, err)
	}
	c, err := net.Dial("unix", control)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
