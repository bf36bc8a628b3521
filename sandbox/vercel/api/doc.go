// Package api speaks the REST protocol of Vercel Sandbox. It is of use on its
// own: it knows no policy of egressd's and no files of the workspace.
//
// Methods that take a name address a sandbox, which may be kept; those that take
// a session id address one boot of it. Every method ends with its context.
//
// What is asked for again after a failure is what can be asked for twice:
// requests that change nothing or set something, and those that were refused or
// never sent. A command is never started twice, a sandbox of the same name
// never made twice, and a stream that has begun is never begun again: Run finds
// out what became of its command and goes on behind the last byte.
//
// Threat: whoever reads logs, errors or another host's requests learns the token
// -> it is in one header of requests to BaseURL's own origin, redirects are not
// followed, plain HTTP is for this machine alone, and every text that comes back
// is searched for it -> whoever owns BaseURL, and a proxy that ends TLS.
package api
