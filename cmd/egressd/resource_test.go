package main

import (
	"errors"
	"maps"
	"testing"
)

func TestResourceFlag(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want map[string]string // nil: refused
	}{
		{nil, map[string]string{"host.name": "here"}},
		{[]string{"k8s.pod.name=a", "k8s.namespace.name=b"}, map[string]string{"host.name": "here", "k8s.pod.name": "a", "k8s.namespace.name": "b"}},
		{[]string{"host.name=node-3"}, map[string]string{"host.name": "node-3"}},
		{[]string{"x=a=b"}, map[string]string{"host.name": "here", "x": "a=b"}},
		{[]string{"x=a", "x=a"}, map[string]string{"host.name": "here", "x": "a"}},
		{[]string{"x=a", "x=b"}, nil},
		{[]string{"x"}, nil},
		{[]string{"x="}, nil},
		{[]string{"=x"}, nil},
	} {
		var a attributes
		var err error
		for _, s := range tt.args {
			err = errors.Join(err, a.Set(s))
		}
		if (err != nil) != (tt.want == nil) {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		got := withHost(a, func() (string, error) { return "here", nil })
		if err == nil && !maps.Equal(got, tt.want) {
			t.Errorf("%q: %v", tt.args, got)
		}
	}
	if got := withHost(nil, func() (string, error) { return "", errors.New("no") }); got != nil {
		t.Errorf("%v of a machine without a name", got)
	}
}
