// Package systemd speaks the two protocols of a service manager, socket activation
// (sd_listen_fds(3)) and notification (sd_notify(3)):
//
//	sockets, err := systemd.Listeners(os.Environ())
//	n, err := systemd.NewNotifier(os.Environ())
//	err = n.Ready("serving")
//
// Both are configured by environment variables, which the caller passes in.
package systemd

import "strings"

// Variables lists the environment variables of both protocols. The caller removes
// them from its own environment once it has read them, so that no child process
// uses them.
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
