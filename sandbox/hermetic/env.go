package hermetic

import (
	"slices"
	"strings"
)

// insideEnv is what is true inside, whatever the machine around it is like.
var insideEnv = []string{"HOME=/", "LOGNAME=user", "PATH=/usr/bin:/bin", "SHELL=/bin/bash", "USER=user"}

// kept are the variables that mean inside what they mean outside. All others
// that pass unasked name places or programs of the machine.
var kept = []string{
	"LANG", "LANGUAGE", "LC_", "TZ", "TERM", "COLORTERM", "COLUMNS", "LINES",
	"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "LS_COLORS", "CI", "SOURCE_DATE_EPOCH",
}

// Env is env as a script of this tier gets it: without what describes the
// machine, and with what is true inside. What named lists (NAME or NAME=VALUE),
// the person has asked for: it stays as it is.
func Env(env, named []string) []string {
	asked := func(name string) bool {
		return slices.ContainsFunc(named, func(n string) bool { n, _, _ = strings.Cut(n, "="); return n == name })
	}
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if asked(name) || slices.ContainsFunc(kept, func(k string) bool {
			return k == name || strings.HasSuffix(k, "_") && strings.HasPrefix(name, k)
		}) {
			out = append(out, kv)
		}
	}
	for _, kv := range insideEnv {
		if name, _, _ := strings.Cut(kv, "="); !asked(name) {
			out = append(out, kv)
		}
	}
	slices.Sort(out)
	return out
}

// complete adds to env what is true inside and what it does not set itself, and
// the placeholders of secrets.
func (b *Backend) complete(env []string) []string {
	env = slices.Clone(env)
	set := func(kv string, replace bool) {
		name, _, _ := strings.Cut(kv, "=")
		at := slices.IndexFunc(env, func(have string) bool { return strings.HasPrefix(have, name+"=") })
		switch {
		case at < 0:
			env = append(env, kv)
		case replace:
			env[at] = kv
		}
	}
	for _, kv := range insideEnv {
		set(kv, false)
	}
	if b.Gate.SecretValue == nil || b.Gate.Policy == nil {
		return env
	}
	for _, secret := range b.Gate.Policy.Load().Secrets() {
		if placeholder, _, ok := b.Gate.SecretValue(secret.Env); ok {
			set(secret.Env+"="+placeholder, true)
		}
	}
	return env
}
