package pod

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/netns/capture"
	"egressd/netns/netlink"
)

// loIndex is the interface index of lo in every network namespace.
const loIndex = 1

// device is a network interface.
type device struct {
	name   string
	index  uint32
	up     bool
	kind   string // veth, dummy, …; "" for lo
	master uint32 // the bridge or bond that it is part of; 0: none
	lower  uint32 // the device in this namespace that carries it; 0: none
}

func devices() ([]device, error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer c.Close()
	answers, err := c.Dump(netlink.Message{Kind: unix.RTM_GETLINK, Body: make([]byte, unix.SizeofIfInfomsg)})
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var all []device
	for _, a := range answers {
		if a.Header.Type != unix.RTM_NEWLINK || len(a.Data) < unix.SizeofIfInfomsg {
			continue
		}
		attrs, err := netlink.Parse(a.Data[unix.SizeofIfInfomsg:])
		if err != nil {
			return nil, err
		}
		info, err := netlink.Parse(netlink.Find(attrs, unix.IFLA_LINKINFO))
		if err != nil {
			return nil, err
		}
		d := device{
			name:   nameOf(attrs, unix.IFLA_IFNAME),
			index:  binary.NativeEndian.Uint32(a.Data[4:]),
			kind:   nameOf(info, unix.IFLA_INFO_KIND),
			up:     binary.NativeEndian.Uint32(a.Data[8:])&unix.IFF_UP != 0,
			master: native(netlink.Find(attrs, unix.IFLA_MASTER)),
		}
		// A veth's link is its other end, and one elsewhere carries nothing here.
		if netlink.Find(attrs, unix.IFLA_LINK_NETNSID) == nil && d.kind != "veth" {
			d.lower = native(netlink.Find(attrs, unix.IFLA_LINK))
		}
		all = append(all, d)
	}
	return all, nil
}

func nameOf(attrs []netlink.Raw, kind uint16) string {
	return strings.TrimRight(string(netlink.Find(attrs, kind)), "\x00")
}

func native(b []byte) uint32 {
	if len(b) != 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}

// outermost are the devices to which the IP stack hands packets itself. What a
// bridge or a VLAN passes on to the device below has lost its route, and would
// seem a foreign frame there.
func outermost(all []device) (names, below []string) {
	for _, d := range all {
		if d.index == loIndex {
			continue
		}
		carries := slices.ContainsFunc(all, func(o device) bool { return o.lower == d.index && o.index != d.index })
		if d.master != 0 || carries {
			below = append(below, d.name)
		} else {
			names = append(names, d.name)
		}
	}
	slices.Sort(names)
	slices.Sort(below)
	return names, below
}

// Devices reports the interfaces of the calling thread's namespace whose
// frames Install would judge.
func Devices() ([]string, error) {
	all, err := devices()
	names, _ := outermost(all)
	return names, err
}

// isolate gives a namespace that has no network, nothing but lo, routes by
// which everything arrives in it, and reports whether it has such routes now.
// Without them a connection fails before any rule sees it.
func isolate(all []device) (bool, error) {
	already, err := arrivesHere()
	if err != nil || already {
		return already, err
	}
	for _, d := range all {
		if d.index != loIndex && d.up {
			return false, nil
		}
	}
	if _, err := capture.Link(); err != nil {
		return false, err
	}
	return true, nil
}

// arrivesHere reports whether every IPv4 address is local here (AnyIP).
func arrivesHere() (bool, error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE)
	if err != nil {
		return false, fmt.Errorf("open rtnetlink: %w", err)
	}
	defer c.Close()
	body := make([]byte, unix.SizeofRtMsg)
	body[0] = unix.AF_INET
	answers, err := c.Dump(netlink.Message{Kind: unix.RTM_GETROUTE, Body: body})
	if err != nil {
		return false, fmt.Errorf("list routes: %w", err)
	}
	for _, a := range answers {
		// struct rtmsg: family, destination's length, …, table, …, …, type
		if len(a.Data) >= unix.SizeofRtMsg && a.Data[1] == 0 && a.Data[4] == unix.RT_TABLE_LOCAL && a.Data[7] == unix.RTN_LOCAL {
			return true, nil
		}
	}
	return false, nil
}

// unisolate undoes isolate.
func unisolate() error {
	already, err := arrivesHere()
	if err != nil || !already {
		return err
	}
	all, err := devices()
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.kind == "dummy" && d.name == "eth0" {
			return capture.Unlink(d.index)
		}
	}
	return capture.Unlink(0)
}

// machineWide reports whether the calling thread's namespace is the machine's
// first one: only that has the settings of the packet backlog.
func machineWide() (bool, error) {
	_, err := os.Stat("/proc/thread-self/net/dev")
	if err != nil {
		return false, fmt.Errorf("examine the namespace: %w", err)
	}
	_, err = os.Stat("/proc/sys/net/core/netdev_max_backlog")
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
