//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// List files are part of the policy: a changed one is in force like a changed
// policy, one with a mistake changes nothing, and one that a reload names first is
// watched from then on.
func TestListFiles(t *testing.T) {
	port := echo(t)
	dir := t.TempDir()
	list, other, path := filepath.Join(dir, "allowed.txt"), filepath.Join(dir, "denied.txt"), filepath.Join(dir, "policy.yaml")
	check(t, os.WriteFile(list, []byte("# none yet\n"), 0o600))
	base := "allow_file: allowed.txt\nhosts: {app.test: 127.0.0.1}\n"
	check(t, os.WriteFile(path, []byte(base), 0o600))
	events := filepath.Join(dir, "events.jsonl")
	p := start(t, "--policy", path, "--listen", "127.0.0.1:0", "--events", events)
	door := p.addr("proxy")
	if err := once(door, "app.test:"+port); err == nil {
		t.Fatal("what the list does not hold is allowed")
	}
	ways["rename"](t, list, "app.test:"+port+"\n")
	eventually(t, "the list in force", func() bool { return once(door, "app.test:"+port) == nil })

	long := must(connect(door, "app.test:"+port, ""))(t)
	defer long.Close()
	check(t, long.ping())
	ways["rename"](t, list, "app.test:"+port+"\na..b\n")
	p.wait("level=ERROR", "the policy was rejected", "allowed.txt:2:1", "an empty label")
	check(t, long.ping())
	check(t, once(door, "app.test:"+port))
	ways["rename"](t, list, "app.test:"+port+"\nother.test\n")

	// While a deny list is missing, no policy is loaded. Once the file appears, the policy is in force.
	ways["rename"](t, path, base+"deny_file: {path: denied.txt, format: hosts, unknown: skip}\n")
	p.wait("level=ERROR", "the policy was rejected", "denied.txt", "no such file")
	check(t, long.ping())
	ways["rename"](t, other, "0.0.0.0 app.test\nwhat is this\n")
	if _, closed := long.closedWithin(patience); !closed {
		t.Fatal("the flow of a name on the new deny list lives on")
	}
	p.wait("level=WARN", "a list holds what is no rule", "left_out=1")
	eventually(t, "a denial that names the list", func() bool {
		_ = once(door, "app.test:"+port)
		record, err := os.ReadFile(events)
		return err == nil && strings.Contains(string(record), "denied.txt:1:9")
	})

	// Lists are inputs: the record may not be written into one.
	ways["rename"](t, path, strings.Replace(base, "allowed.txt", "events.jsonl", 1))
	p.signal(syscall.SIGHUP)
	p.wait("level=ERROR", "the policy was rejected", "name another file")
}
