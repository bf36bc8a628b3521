package capture

import (
	"fmt"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
)

// Unlink undoes Link in the calling thread's network namespace. eth is the
// index of the eth0 that Link made, 0 if it made none. It needs CAP_NET_ADMIN.
func Unlink(eth uint32) error {
	c, err := netlink.Dial(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open rtnetlink: %w", err)
	}
	defer c.Close()
	own := netlink.Message{
		Kind: unix.RTM_DELADDR, Flags: unix.NLM_F_ACK, About: "remove the address",
		Body: netlink.Append(ifaddrmsg(loIndex), netlink.Attr{Kind: unix.IFA_LOCAL, Data: ownAddr()}),
	}
	if eth != 0 {
		own = netlink.Message{Kind: unix.RTM_DELLINK, Flags: unix.NLM_F_ACK, About: "remove eth0", Body: ifinfomsg(eth)}
	}
	answers, err := c.Send([]netlink.Message{oldRoute(unix.AF_INET), oldRoute(unix.AF_INET6), own})
	if err != nil {
		return err
	}
	answers[1] = nil // without IPv6 there is no such route
	return netlink.First(answers, nil)
}

// oldRoute is "ip route del local default dev lo".
func oldRoute(family byte) netlink.Message {
	b := localDefault(family)
	b[5] = unix.RTPROT_UNSPEC // made by any program
	return netlink.Message{Kind: unix.RTM_DELROUTE, Flags: unix.NLM_F_ACK, About: "remove the route", Body: b}
}
