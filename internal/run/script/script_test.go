package script

import (
	"strings"
	"testing"

	"egressd/hermetic/limits"
)

func TestInterpreter(t *testing.T) {
	for script, want := range map[string]string{
		"": "bash", "echo a": "bash", "#!/bin/sh\necho a": "sh", "#! /bin/bash -eu\n": "bash -eu", "#!/usr/bin/env bash": "bash",
		"#!/bin/dash": "sh", "#!": "bash", "#!/usr/bin/python3\n": "", "#!/usr/bin/env node": "", "#!/usr/bin/awk -f": "",
	} {
		got, err := interpreter(script)
		if strings.Join(got, " ") != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", script, got, err, want)
		}
	}
}

func TestLimitFlag(t *testing.T) {
	var c Options
	for _, s := range []string{"commands=5", "memory=64M", "commands=7"} {
		if err := c.Limits.Set(s); err != nil {
			t.Error(err)
		}
	}
	if want := (limits.Limits{Commands: 7, Memory: 64 << 20}); c.Limits != want {
		t.Errorf("%+v", c.Limits)
	}
	for _, s := range []string{"", "commands", "=1", "speed=1", "commands=", "commands=x"} {
		if err := c.Limits.Set(s); err == nil {
			t.Errorf("%q is a limit", s)
		}
	}
}
