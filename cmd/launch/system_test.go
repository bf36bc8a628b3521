//go:build linux && system

package main

import "testing"

// TestSystemScripts are scripts with programs that a bare machine lacks.
func TestSystemScripts(t *testing.T) { runScripts(t, "testdata/system") }
