//go:build linux

package main

import (
	"path/filepath"
	"testing"
)

// A rule that strangers own names below is logged when the policy is loaded, and
// when it is loaded again.
func TestWideRulesAreLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	configMap(t, path, "allow: ['*.github.io']\n")
	p := start(t, "--policy", path, "--listen", "127.0.0.1:0")
	p.wait("a rule is wider than it looks", "names below github.io")
	configMap(t, path, "allow: ['*.gitlab.io']\n")
	p.wait("a rule is wider than it looks", "names below gitlab.io")
}
