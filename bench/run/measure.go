package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"egressd/bench/contest"
	"egressd/bench/install"
)

// row is one line that a measurement has printed, with the program that did.
type row map[string]any

// outside installs, builds, measures in a namespace, and writes what came of it.
func outside(ctx context.Context, c config) error {
	if err := os.MkdirAll(c.peers, 0o755); err != nil { // #nosec: programs, which some run as another user
		return err
	}
	var missing []*contest.Missing
	if !c.keep {
		missing = getPeers(ctx, c.peers, say)
	}
	dir, err := os.MkdirTemp("", "egressd-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // #nosec: as above
		return err
	}
	say("building egressd, launch and the loads")
	if _, err := contest.Egressd(ctx, dir); err != nil {
		return err
	}
	if _, err := install.Launch(ctx, dir); err != nil {
		return err
	}
	for _, load := range []string{"load", "dns", "startup", "lists"} {
		if err := command(ctx, ".", []string{"CGO_ENABLED=0"}, "go", "build", "-o", filepath.Join(dir, "bench-"+load), "egressd/bench/"+load); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-inside", dir, "-peers", c.peers, "-rounds", strconv.Itoa(c.rounds), "-each", c.each.String())
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	namespace(cmd)
	out, err := cmd.Output()
	rows, perr := parse(out)
	if err = errors.Join(err, perr); err != nil {
		return err
	}
	for _, m := range missing {
		rows = append(rows, row{"what": "missing", "who": m.Who, "why": m.Why, "of": "run"})
	}
	text, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.out, append(text, '\n'), 0o644); err != nil { // #nosec: figures
		return err
	}
	return show(c, rows)
}

// again shows the figures of another run.
func again(_ context.Context, c config) error {
	text, err := os.ReadFile(c.from)
	if err != nil {
		return err
	}
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		return fmt.Errorf("%s: %w", c.from, err)
	}
	return show(c, rows)
}

func show(c config, rows []row) error {
	t := newTables(rows)
	fmt.Print(t.markdown())
	if c.page {
		return t.writePage("docs")
	}
	return nil
}

func parse(out []byte) (rows []row, err error) {
	for line := range bytes.Lines(out) {
		var r row
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// inside measures. All programs are built, and the network is the loopback alone.
func inside(ctx context.Context, c config) error {
	if err := loopbackUp(); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(c.inside, name) }
	rounds, each := strconv.Itoa(c.rounds), c.each.String()
	flows := strconv.Itoa(manyFlows())
	egressd := []string{"-egressd", at("egressd")}
	withPeers := append([]string{"-peers", c.peers, "-rounds", rounds, "-each", each}, egressd...)
	if err := os.Mkdir(at("empty"), 0o755); err != nil { // #nosec: nothing is in it
		return err
	}
	startup := []string{"-launch", at("launch"), "-n", "40"}
	if _, err := os.Stat(srt(c.peers)); err == nil {
		startup = append(startup, "-also", "srt="+srt(c.peers))
	} else {
		emit("startup", row{"what": "missing", "who": "srt", "why": "it is not installed"})
	}
	if found, err := exec.LookPath("firejail"); err == nil {
		startup = append(startup, "-also", "firejail="+found+" --quiet --noprofile --net=none")
	} else {
		emit("startup", row{"what": "missing", "who": "firejail", "why": "it is not installed"})
	}
	steps := []struct {
		as, load string
		args     []string
	}{
		{"load", "load", append([]string{"-only", "connect,connect_tls,refused,ping_1,ping_200,http_get,bulk_1,bulk_8"}, withPeers...)},
		{"flows 1000", "load", append([]string{"-only", "idle_memory", "-idle", "1000", "-without", "direct,bare,squid-2"}, withPeers...)},
		{"flows " + flows, "load", append([]string{"-only", "idle_memory", "-idle", flows, "-without", "direct,bare,squid-2"}, withPeers...)},
		{"dns", "dns", withPeers},
		{"lists", "lists", append([]string{"-names", "1000", "-yaml=false", "-runs", "1", "-set-ups", "10000", "-reloads", "2"}, egressd...)},
		{"lists", "lists", append([]string{"-names", "100000", "-yaml=false", "-runs", "1", "-set-ups", "10000", "-reloads", "2"}, egressd...)},
		{"lists", "lists", append([]string{"-names", "1000000", "-yaml=false", "-runs", "1", "-set-ups", "10000", "-reloads", "2"}, egressd...)},
		{"startup", "startup", startup},
	}
	for _, s := range steps {
		say("%s", s.as)
		cmd := exec.CommandContext(ctx, at("bench-"+s.load), s.args...)
		cmd.Stderr = os.Stderr
		if s.load == "startup" { // launch looks through the directory that it runs in
			cmd.Dir = at("empty")
		}
		out, err := cmd.Output()
		rows, perr := parse(out)
		if perr != nil {
			return perr
		}
		for _, r := range rows {
			emit(s.as, r)
		}
		// startup ends with 1 when it misses its goal, which is no failure here.
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !(ok && s.load == "startup" && exit.ExitCode() == 1 && len(rows) > 0) {
			return fmt.Errorf("%s: %w", s.as, err)
		}
	}
	return nil
}

// emit prints a row of a step.
func emit(of string, r row) {
	if r["what"] == "ratio" {
		r["ratio_of"] = r["of"]
	}
	r["of"] = of
	text, err := json.Marshal(r)
	if err != nil {
		text = []byte(`{"what":"error"}`)
	}
	fmt.Println(string(text))
}

// manyFlows is ten thousand, or as many as the descriptors of the load allow.
func manyFlows() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1000
	}
	const spare = 2000
	return int(min(10_000, max(1000, (int64(limit.Max)-spare)/2)/1000*1000)) // #nosec G115 -- a limit of descriptors
}
