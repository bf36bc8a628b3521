package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"egressd/gate/handover"
	"egressd/internal/daemon/admin"
	"egressd/internal/linux/unixsocket"
	"egressd/netns"
)

// addPassed adds the sockets that the service manager opened.
func (d *daemon) addPassed() {
	for _, p := range d.c.Sockets {
		kind, name, _ := strings.Cut(p.Name, ".")
		d.sockets.all = append(d.sockets.all, socket{
			kind: kind, what: "socket " + p.Name + " of the service manager", policy: name, ln: p.Listener, pc: p.Packet,
		})
	}
}

// openInside opens s in the network namespace at path.
func (s *socket) openInside(ctx context.Context, path, addr string) error {
	ns, err := netns.Open(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	return ns.Do(func() error { return s.open(ctx, addr) })
}

// openControl opens the admin address and the control sockets, which agents must
// not reach.
func (d *daemon) openControl(ctx context.Context) error {
	if d.c.Admin != "" && !d.has(kindAdmin) {
		network, addr, err := admin.ParseAddr(d.c.Admin)
		if err != nil {
			return err // unreachable: it was validated
		}
		err = d.add(socket{kind: kindAdmin, what: "--admin " + d.c.Admin}, func(s *socket) (err error) {
			if network == "unix" {
				s.ln, err = unixsocket.Listen(ctx, addr)
				return err
			}
			s.ln, err = new(net.ListenConfig).Listen(ctx, network+ipVersion(addr), addr)
			return err
		})
		if err != nil {
			return err
		}
	}
	if d.has(kindControl) {
		return nil
	}
	for _, c := range d.c.Control {
		err := d.add(socket{kind: kindControl, what: "--control " + c.String(), policy: c.Policy}, func(s *socket) (err error) {
			s.ln, err = handover.Listen(ctx, strings.TrimPrefix(c.Addr, "unix:"))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hint reports what to do about a socket that could not be opened.
func (s *socket) hint(err error) string {
	forbidden := errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return ": another program listens there; name another port, or end it"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return ": this machine has no such address"
	case forbidden && s.inside:
		return fmt.Sprintf(": user %d may not enter that network namespace: it takes CAP_SYS_ADMIN (and CAP_SYS_PTRACE for /proc/PID/ns/net of others): run egressd as root, or let a socket unit open the door", os.Geteuid())
	case forbidden && (s.kind == kindAdmin || s.kind == kindControl):
		return fmt.Sprintf(": user %d may not make a socket there: name a directory that this user may write", os.Geteuid())
	case forbidden:
		return fmt.Sprintf(": user %d may not listen there: a port below 1024 takes CAP_NET_BIND_SERVICE; name a higher one", os.Geteuid())
	case errors.Is(err, fs.ErrNotExist) && (s.kind == kindAdmin || s.kind == kindControl):
		return ": make the directory first"
	}
	return ""
}
