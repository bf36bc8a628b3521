// Package fetch is HTTP for curl and wget, without a socket: the only connection
// is to the HTTP proxy that the session provides, which decides where it may go.
//
// Threat: a script reaches a host that the policy does not list, by a redirect,
// a --proxy, a --resolve or the environment -> every request, redirects
// included, is one new connection of Session.Proxy with the host's name in it;
// options that lead elsewhere are refused and no variable is read -> the gate
// decides, so what is left over is what the policy allows.
package fetch
