package main

import (
	"fmt"
	"strings"
)

// hostName is the attribute that is there without being asked for.
const hostName = "host.name"

// attributes is the flag --resource.
type attributes map[string]string

// String implements flag.Value.
func (a *attributes) String() string { return "" }

// IsList implements listed.
func (a *attributes) IsList() bool { return true }

// Set implements flag.Value. daemon.Run judges names and values.
func (a *attributes) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" || value == "" {
		return fmt.Errorf("%q: write NAME=VALUE, such as k8s.pod.name=web-1", s)
	}
	if old, twice := (*a)[name]; twice && old != value {
		return fmt.Errorf("%s is %q already: give it once", name, old)
	}
	if *a == nil {
		*a = attributes{}
	}
	(*a)[name] = value
	return nil
}

// withHost adds the name of this machine to a, unless it has one or hostname has none.
func withHost(a map[string]string, hostname func() (string, error)) map[string]string {
	if _, given := a[hostName]; given {
		return a
	}
	name, err := hostname()
	if err != nil || name == "" {
		return a
	}
	if a == nil {
		a = map[string]string{}
	}
	a[hostName] = name
	return a
}
