package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"egressd/bench/contest"
)

// installPatience bounds one installation: CoreDNS is built with all its plugins.
const installPatience = 20 * time.Minute

// goPeers are built from the Go module proxy.
var goPeers = []struct{ name, module string }{
	{"coredns", "github.com/coredns/coredns@v1.15.0"},
	{"smokescreen", "github.com/stripe/smokescreen@latest"},
}

// debian are packages that have a program of the same name.
var debian = []string{"squid", "tinyproxy", "haproxy", "unbound", "dnsdist", "dnsmasq", "firejail"}

// npmPeer is Anthropic's sandbox-runtime, with what it needs of Debian.
const (
	npmPeer  = "@anthropic-ai/sandbox-runtime"
	npmNeeds = "bubblewrap socat ripgrep"
)

// goproxyMain is the first example of that library's README.
const goproxyMain = `package main

import (
	"log"
	"net/http"
	"os"

	"github.com/elazarl/goproxy"
)

func main() { log.Fatal(http.ListenAndServe(os.Args[1], goproxy.NewProxyHttpServer())) }
`

// getPeers gets what is not there, into dir or from Debian, and reports what cannot be had.
func getPeers(ctx context.Context, dir string, say func(string, ...any)) (missing []*contest.Missing) {
	miss := func(who string, err error) {
		text := strings.TrimSpace(err.Error())
		if i := strings.LastIndexByte(text, '\n'); i >= 0 {
			text = strings.TrimSpace(text[i+1:])
		}
		missing = append(missing, &contest.Missing{What: "missing", Who: who, Why: text})
		say("%s cannot be installed: %s", who, text)
	}
	for _, name := range debian {
		if _, err := contest.Find(dir, name); err == nil {
			continue
		}
		say("installing %s", name)
		if err := apt(ctx, name); err != nil {
			miss(name, err)
		}
	}
	for _, p := range goPeers {
		if _, err := contest.Find(dir, p.name); err == nil {
			continue
		}
		say("building %s", p.module)
		if err := command(ctx, dir, []string{"GOBIN=" + dir, "GOWORK=off", "CGO_ENABLED=0"}, "go", "install", p.module); err != nil {
			miss(p.name, err)
		}
	}
	if _, err := contest.Find(dir, "goproxy"); err != nil {
		say("building goproxy's example")
		if err := buildGoproxy(ctx, dir); err != nil {
			miss("goproxy", err)
		}
	}
	if _, err := os.Stat(srt(dir)); err != nil {
		say("installing %s", npmPeer)
		err := errors.Join(apt(ctx, strings.Fields(npmNeeds)...), command(ctx, dir, nil, "npm", "install", "--no-audit", "--no-fund", "--prefix", dir, npmPeer))
		if err != nil {
			miss("srt", err)
		}
	}
	return missing
}

// srt is the program of npmPeer.
func srt(dir string) string { return filepath.Join(dir, "node_modules", ".bin", "srt") }

func buildGoproxy(ctx context.Context, dir string) error {
	source := filepath.Join(dir, "goproxy-example")
	if err := os.MkdirAll(source, 0o755); err != nil { // #nosec: a program's source
		return err
	}
	err := errors.Join(os.WriteFile(filepath.Join(source, "main.go"), []byte(goproxyMain), 0o600),
		os.WriteFile(filepath.Join(source, "go.mod"), []byte("module peer\n\ngo 1.26\n"), 0o600))
	if err != nil {
		return err
	}
	env := []string{"GOWORK=off", "CGO_ENABLED=0"}
	if err := command(ctx, source, env, "go", "get", "github.com/elazarl/goproxy@v1.9.2"); err != nil {
		return err
	}
	return command(ctx, source, env, "go", "build", "-o", filepath.Join(dir, "goproxy"), ".")
}

// apt installs Debian packages, and starts no service.
func apt(ctx context.Context, packages ...string) error {
	if os.Geteuid() != 0 {
		return errors.New("Debian packages are installed as root: apt-get install " + strings.Join(packages, " "))
	}
	args := append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...)
	env := []string{"DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"}
	if command(ctx, "/", env, "apt-get", args...) == nil {
		return nil
	}
	return errors.Join(command(ctx, "/", env, "apt-get", "update", "-qq"), command(ctx, "/", env, "apt-get", args...))
}

func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, installPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, text)
	}
	return nil
}
