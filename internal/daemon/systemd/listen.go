package systemd

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Named is one socket that the service manager opened. Exactly one of Listener
// and Packet is set; the caller closes it.
type Named struct {
	Name     string         // FileDescriptorName= of the socket unit; without one, the unit's name
	Listener net.Listener   // a listening stream socket, TCP or unix
	Packet   net.PacketConn // a datagram socket
}

// Bounds of what is believed. A descriptor name has at most 255 characters
// (systemd.socket(5)).
const (
	firstFD      = 3
	maxFDs       = 1024
	maxNameBytes = 255
)

// names reports the name of each passed descriptor, in order: none when the
// variables are for nobody or for another process.
func names(env []string, pid int) ([]string, error) {
	count, okCount := lookup(env, "LISTEN_FDS")
	forPID, okPID := lookup(env, "LISTEN_PID")
	if !okCount && !okPID {
		return nil, nil
	}
	if !okCount || !okPID {
		return nil, errors.New("socket activation: LISTEN_FDS and LISTEN_PID come together, and one is missing")
	}
	p, err := number(forPID)
	if err != nil || p == 0 {
		return nil, fmt.Errorf("socket activation: LISTEN_PID=%q is not a process id", forPID)
	}
	if p != pid {
		return nil, nil // a parent's, which forgot to remove it
	}
	n, err := number(count)
	if err != nil || n > maxFDs {
		return nil, fmt.Errorf("socket activation: LISTEN_FDS=%q is not a number from 0 to %d", count, maxFDs)
	}
	list, ok := lookup(env, "LISTEN_FDNAMES")
	if !ok {
		if n > 0 {
			return nil, errors.New("socket activation: LISTEN_FDNAMES is missing: give each socket unit a FileDescriptorName=")
		}
		return nil, nil
	}
	var all []string
	if n > 0 || list != "" {
		all = strings.Split(list, ":")
	}
	if len(all) != n {
		return nil, fmt.Errorf("socket activation: LISTEN_FDS=%d, and LISTEN_FDNAMES has %d names", n, len(all))
	}
	for _, name := range all {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func checkName(name string) error {
	if name == "" || len(name) > maxNameBytes {
		return fmt.Errorf("socket activation: LISTEN_FDNAMES holds a name of %d characters: 1 to %d are possible", len(name), maxNameBytes)
	}
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' {
			return fmt.Errorf("socket activation: LISTEN_FDNAMES holds the name %q: plain ASCII is possible", name)
		}
	}
	return nil
}

// number reads decimal digits and nothing else: no sign, no leading zero, no
// space.
func number(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, errors.New("not a number")
	}
	return int(n), nil
}
