// Package daemon serves named policies at their doors, reloads them and drains:
//
//	err := daemon.Run(ctx, daemon.Config{
//		Policies: []daemon.Source{{Name: daemon.DefaultPolicy, Files: []string{"policy.yaml"}}},
//		Doors:    daemon.Doors{Listen: []daemon.Door{{Addr: daemon.DefaultListen}}},
//		Outputs:  daemon.Outputs{Stdout: os.Stdout},
//	})
//
// Run returns once ctx has ended and open flows have finished, or at once with a
// *[ConfigError] that says what must be changed.
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
	"egressd/policy/upstream"
)

// DefaultPolicy is the policy of doors that name none.
const DefaultPolicy = "default"

// DefaultListen is the address of the explicit door unless another is given.
const DefaultListen = "127.0.0.1:3128"

// Config says what to serve. The zero Config is refused: it names no policy.
type Config struct {
	Policies      []Source         // names are unique
	UpstreamProxy upstream.Section // of every policy, in front of its own; zero: none
	Upstreams     []policy.Entry   // DNS servers in front of those of every policy

	Doors
	Clients
	Outputs
	Process

	Drain time.Duration // the longest that open flows may take to finish; zero: they are closed
	// Reload asks for everything to be read again. Closing Now ends a drain.
	Reload <-chan os.Signal
	Now    <-chan struct{}

	Version string
}

// Doors are the addresses to listen on. The policy of a Door is its Policy, or
// that of its namespace, or DefaultPolicy; if there is no such policy, clients must
// have a token or come from a network of Clients.Sources.
type Doors struct {
	Listen, Transparent, DNS []Door
	// Netns are network namespaces to open these doors in, each of them; Addr is
	// the path. Empty: they are opened in the daemon's own.
	Netns   []Door
	Control []Door // unix:PATH; Policy is the ceiling of what launchers hand over
	Admin   string // HOST:PORT or unix:PATH; "": none

	// Sockets were opened by the service manager: proxy, transparent, dns, admin
	// and control, each optionally with .NAME of a policy. A kind that is among
	// them is not opened by address.
	Sockets []systemd.Named
}

// Clients says how clients are assigned to policies other than their door's.
type Clients struct {
	Sources []SourceRule // the longest prefix wins
	Tokens  string       // file; "": there are no tokens
}

// Outputs are what the daemon writes.
type Outputs struct {
	Events   string            // file, or - (also "") for Stdout
	Quota    Quota             // of the events of each policy
	Rotate   Rotation          // of the events file
	Sync     time.Duration     // between times that it is made durable; zero: when it is closed
	Stdout   *os.File          // stays the caller's
	CABundle string            // file for the certificates that clients must trust; "": none
	Log      *slog.Logger      // nil discards
	Resource map[string]string // what every event says of where the daemon runs; nil: nothing
}

// Quota bounds the events that one policy writes, in bytes. Zero fields bound
// nothing. See event.Writer.Share.
type Quota struct {
	Rate, Burst int64 // a second, and at once; zero Burst: what a minute at Rate makes
	Total       int64 // in one file
}

// Rotation says when the events file is put away and a new one begun. The zero Rotation
// never does.
type Rotation struct {
	Size int64 // bytes of a file, about; zero: it grows
	Keep int   // files that were put away and stay, the newest ones; negative: all
}

// Process is what the daemon uses of the process that it runs in.
type Process struct {
	// Getenv reads the values of secrets. Nil: none is set.
	Getenv func(name string) string
	// ReadFile reads policies and resolv.conf; nil is watch.ReadFile.
	ReadFile func(name string) ([]byte, error)
	// Memory is the limit on what the process may hold, in bytes, by which the default of
	// connections is bounded. Zero: none is known.
	Memory int64
	// RootCAs verifies the origins of intercepted TLS. Nil: the system's roots.
	RootCAs  *x509.CertPool
	Notifier *systemd.Notifier // the service manager; nil: none
	// Harden closes the whole process off from others, and takes from it what a
	// daemon does not need. For a process that does nothing else.
	Harden bool
	// Traceable leaves the process open to others of its user where Harden would close
	// it. A debugger wants that, and so does launch's process tier, which on most kernels
	// looks into a process to make its connections for it.
	Traceable bool
}

// Source is where a policy comes from: flags and files, which add up.
type Source struct {
	Name  string
	Flags *policy.Document // nil: none
	Files []string
}

// Door is an address and the policy of the clients that connect there.
type Door struct {
	Policy string // "": see Doors
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

// ConfigError is a configuration or a policy that must be changed before the
// daemon can start.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap reports Err.
func (e *ConfigError) Unwrap() error { return e.Err }

func misconfigured(format string, args ...any) error {
	return &ConfigError{fmt.Errorf(format, args...)}
}
