package process

import (
	"strings"
	"testing"
)

func TestLimitsByName(t *testing.T) {
	var l Limits
	for _, s := range []string{"pids=100,memory=1G", "cpu=1.5", "files=64,disk=512M", "pids=200"} {
		if err := l.Set(s); err != nil {
			t.Error(err)
		}
	}
	if want := (Limits{Pids: 200, Memory: 1 << 30, CPU: 1500, Files: 64, Disk: 512 << 20}); l != want {
		t.Errorf("got %+v", l)
	}
	var again Limits
	if err := again.Set(l.String()); err != nil || again != l {
		t.Errorf("%q is %+v again, %v", l.String(), again, err)
	}
	if got := (Limits{}).InForce(); got.Pids != DefaultPids() || got.String() == "" || (Limits{}).String() != "" {
		t.Errorf("in force without a limit: %q", got)
	}
	if got := (Limits{}).InForce().Met("pids"); strings.Contains(got, "pids=0") || !strings.Contains(got, "not started") {
		t.Errorf("the default was met: %q", got)
	}
	if got := l.Met("memory"); !strings.Contains(got, "--limit memory=1073741824") || !strings.Contains(got, "killed") {
		t.Errorf("memory was met: %q", got)
	}
	for s, want := range map[string]string{
		"": "NAME=N", "pids": "NAME=N", "pids=": "not a number", "pids=x": "not a number", "pids=1": "32 is the least", "pids=-5": "not a number",
		"memory=1M": "33554432 is the least", "memory=many": "512M", "cpu=0": "processors", "cpu=NaN": "processors", "cpu=0.001": "0.01 is the least",
		"output=1": `the process tier has no limit "output"`, "pids=100,": "NAME=N", "files=99999999999": "not a number", "disk=0": "above 0",
	} {
		if err := new(Limits).Set(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
}
