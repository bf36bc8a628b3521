package main

import (
	"crypto/rand"
	"fmt"
	"strings"

	"egressd/policy"
)

// secret is a value and what stands for it inside.
type secret struct{ placeholder, value string }

// findSecrets reads the values of the policy's secrets from the environment.
// One that is not set is an error: the program would run without it and fail
// in a way nobody understands.
func findSecrets(p *policy.Policy, environ []string) (map[string]secret, error) {
	found := make(map[string]secret)
	for _, want := range p.Secrets() {
		if _, done := found[want.Env]; done {
			continue
		}
		value := lookup(environ, want.Env)
		if value == "" {
			return nil, fmt.Errorf("%s: secret %s is not set: export %s before you run launch", want.Pos, want.Env, want.Env)
		}
		found[want.Env] = secret{placeholder: "egressd-placeholder-" + rand.Text(), value: value}
	}
	return found, nil
}

// placeholders reports NAME=placeholder for each secret, for the inside.
func placeholders(secrets map[string]secret) []string {
	var out []string
	for name, s := range secrets {
		out = append(out, name+"="+s.placeholder)
	}
	return out
}

func (s *session) secretValue(env string) (placeholder, value string, ok bool) {
	v, ok := s.secrets[env]
	return v.placeholder, v.value, ok
}

// lookup reports a variable of environ; "" when it is not set.
func lookup(environ []string, name string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
