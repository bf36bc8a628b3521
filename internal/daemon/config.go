// Package daemon is egressd's life: named policies and their gates, the
// listeners that lead to them, reload, drain and readiness.
package daemon

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"egressd/internal/daemon/systemd"
	"egressd/policy"
)

// DefaultPolicy judges whom nothing else assigns to a policy.
const DefaultPolicy = "default"

// DefaultListen is where the explicit doors are when nobody says otherwise.
const DefaultListen = "127.0.0.1:3128"

// Config says what to serve. The zero Config is refused: it names no policy.
type Config struct {
	Policies  []Source       // names are unique
	Upstreams []policy.Entry // DNS servers in front of those of every policy

	// Doors by kind. The policy of one is Policy, or that of its namespace, or
	// DefaultPolicy; when there is no such policy, clients must have a token or
	// come from a Source.
	Listen, Transparent, DNS []Door
	// Netns are network namespaces to open these doors in, each of them; Addr is
	// the path. Empty: they are opened where the daemon is.
	Netns   []Door
	Control []Door // unix:PATH; Policy is the ceiling of the sessions
	Admin   string // HOST:PORT or unix:PATH; "": none

	// Sockets were opened by the service manager: proxy, transparent, dns, admin
	// and control, each optionally with .NAME of a policy. A kind that is among
	// them is not opened by address.
	Sockets []systemd.Named

	Sources []SourceRule // the longest prefix wins
	Tokens  string       // file; "": nobody has a token

	Events   string // file, or - for Stdout
	CABundle string // file to write whom clients must trust; "": none
	Drain    time.Duration

	Log     *slog.Logger // nil discards
	Stdout  *os.File
	Version string
	// Getenv reads the values of secrets. Nil: none is set.
	Getenv func(name string) string
	// RootCAs verifies the origins of intercepted TLS. Nil: the system's.
	RootCAs *x509.CertPool
	// ReadFile reads policies and resolv.conf; nil is watch.ReadFile.
	ReadFile func(name string) ([]byte, error)
	Notifier *systemd.Notifier // nil tells nobody
	// Harden closes the whole process off from others, and takes from it what a
	// daemon does not need: for one that is nothing else.
	Harden bool

	// Reload asks for everything to be read again. Now, when it is closed, ends a
	// drain.
	Reload <-chan os.Signal
	Now    <-chan struct{}
}

// Source is where a policy comes from: flags, then files, which add up.
type Source struct {
	Name  string
	Flags *policy.Document // nil: none
	Files []string
}

// Door is an address and the policy of those who come there.
type Door struct {
	Policy string // "": see Config
	Addr   string
}

// String reports [NAME@]ADDR.
func (d Door) String() string {
	if d.Policy == "" {
		return d.Addr
	}
	return d.Policy + "@" + d.Addr
}

// SourceRule assigns the clients of a network to a policy.
type SourceRule struct {
	Prefix netip.Prefix
	Policy string
}

// ConfigError is a configuration or a policy that somebody has to change before
// the daemon can start.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap reports Err.
func (e *ConfigError) Unwrap() error { return e.Err }

func misconfigured(format string, args ...any) error {
	return &ConfigError{fmt.Errorf(format, args...)}
}
