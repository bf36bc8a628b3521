//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The daemon rotates its events by size under load, and is told by SIGHUP to open its
// file again meanwhile: no line is missing, none is cut.
func TestEventsRotateBySize(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, "events.jsonl")
	p := start(t, "--allow", "*.a.example", "--listen", "none", "--dns", "127.0.0.1:0", "--events", events,
		"--events-rotate", "size=1M,keep=all", "--events-sync", "20ms")
	const questions = 6000
	for i := range 2 {
		ask(t, p.addr("dns"), questions/2, func(n int) string { return fmt.Sprintf("n%d-%d.%s.a.example.", i, n, strings.Repeat("x", 60)) })
		p.signal(syscall.SIGHUP)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(30 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	files := must(filepath.Glob(events + ".*"))(t)
	slices.Sort(files)
	if len(files) < 2 {
		t.Errorf("%q were put away", files)
	}
	var all []byte
	for _, name := range append(files, events) {
		data := must(os.ReadFile(name))(t)
		if name != events && (len(data) < 1<<20 || len(data) > 2<<20) {
			t.Errorf("%s has %d bytes", name, len(data))
		}
		all = append(all, data...)
	}
	whole := write(t, "whole", string(all))
	told(t, whole, "")
	if n := strings.Count(string(all), `"type":"dns.query"`); n != questions {
		t.Errorf("%d of %d questions are on record", n, questions)
	}
}
