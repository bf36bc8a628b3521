// Package systemd speaks the two protocols of a service manager: sockets that
// it opened for us (sd_listen_fds(3)), and what it wants to hear of us
// (sd_notify(3)). Both are told by environment variables, which the caller
// passes in.
package systemd

import "strings"

// Variables lists the environment variables of both protocols. The caller
// removes them from its own environment once it has read them, so that no child
// takes them for its own.
func Variables() []string {
	return []string{
		"LISTEN_FDS", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDNAMES",
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
	}
}

// lookup reports a variable of env (NAME=VALUE each); the first one counts, as
// in getenv(3).
func lookup(env []string, name string) (value string, ok bool) {
	for _, kv := range env {
		if v, found := strings.CutPrefix(kv, name+"="); found {
			return v, true
		}
	}
	return "", false
}
