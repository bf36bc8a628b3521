// Package web is curl and wget without a socket: their one connection is to the
// HTTP proxy that the session hands them, which judges where it may go.
//
// Threat: a script talks to a host that the policy does not list, by a redirect,
// a --proxy, a --resolve or the environment -> every request, redirects
// included, is one new connection of Session.Proxy with the host's name in it;
// options that lead elsewhere are refused and no variable is read -> the gate
// decides, so what is left over is what the policy allows.
package web

import "egressd/hermetic/command"

// Commands reports curl and wget. They exist where Session.Proxy is set.
func Commands() command.Table {
	return command.Table{"curl": curl, "wget": wget}
}
