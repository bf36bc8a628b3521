// Package secrets finds the values of a policy's secrets, and makes the
// placeholders that stand for them inside.
//
//	set, err := secrets.Find(policy, os.Getenv)
//	env = append(env, set.Env()...)
//	config.SecretValue = set.Value
package secrets

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	"egressd/policy"
)

// Set holds the secrets of one run. The zero Set has none.
//
// Threat: the program inside, or anybody who can read its environment, takes a
// credential away -> inside there is only a random placeholder of this run; the
// gate puts the value in its place, in one header, towards the hosts that the
// policy names. Left over: those hosts can send the value back in an answer.
type Set struct {
	byName map[string]secret
}

type secret struct{ placeholder, value string }

// Find reads the values with lookup. A value that is not set is an error: without
// it the program would fail in a way that is hard to understand.
func Find(p *policy.Policy, lookup func(name string) string) (Set, error) {
	s := Set{byName: make(map[string]secret)}
	for _, want := range p.Secrets() {
		if _, done := s.byName[want.Env]; done {
			continue
		}
		value := lookup(want.Env)
		if value == "" {
			return Set{}, fmt.Errorf("%s: secret %s is not set: export %s before you run launch", want.Pos, want.Env, want.Env)
		}
		s.byName[want.Env] = secret{placeholder: "egressd-placeholder-" + rand.Text(), value: value}
	}
	return s, nil
}

// Env reports NAME=placeholder for each secret, for the inside.
func (s Set) Env() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		out = append(out, name+"="+s.byName[name].placeholder)
	}
	return out
}

// Value reports the placeholder of a secret, and its value.
func (s Set) Value(name string) (placeholder, value string, ok bool) {
	v, ok := s.byName[name]
	return v.placeholder, v.value, ok
}
