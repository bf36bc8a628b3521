// Package iproute does for tests what they would run ip(8) for, so that a
// machine without that program can run them:
//
//	err := errors.Join(iproute.Up("lo"), iproute.Route{To: iproute.All4, Dev: "lo", Local: true}.Add())
//
// Every function acts in the network namespace of the calling thread, and needs
// CAP_NET_ADMIN there.
package iproute

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// All4 and All6 are every address of their family.
var (
	All4 = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	All6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
)

// vethPeer is VETH_INFO_PEER, which x/sys/unix does not have.
const vethPeer = 1

// Up takes a link into service.
func Up(link string) error {
	index, err := indexOf(link)
	if err != nil {
		return err
	}
	return send("set "+link+" up", unix.RTM_NEWLINK, 0, linkMessage(index, unix.IFF_UP))
}

// Delete removes a link; its peer goes with it.
func Delete(link string) error {
	index, err := indexOf(link)
	if err != nil {
		return err
	}
	return send("delete "+link, unix.RTM_DELLINK, 0, linkMessage(index, 0))
}

// AddVeth makes a wire: one end is called link, the other peer, in the network
// namespace that the file ns is.
func AddVeth(link, peer, ns string) error {
	f, err := os.Open(ns)
	if err != nil {
		return err
	}
	defer f.Close()
	end := slices.Concat(linkMessage(0, 0), attribute(unix.IFLA_IFNAME, zero(peer)), attribute(unix.IFLA_NET_NS_FD, number(int(f.Fd()))))
	info := slices.Concat(attribute(unix.IFLA_INFO_KIND, zero("veth")), attribute(unix.IFLA_INFO_DATA, attribute(vethPeer, end)))
	return send("add "+link, unix.RTM_NEWLINK, create, slices.Concat(linkMessage(0, 0),
		attribute(unix.IFLA_IFNAME, zero(link)), attribute(unix.IFLA_LINKINFO, info)))
}

// AddAddr gives link an address and the network around it. An IPv6 address is
// in use at once, whoever else may have it.
func AddAddr(link, prefix string) error {
	p, err := netip.ParsePrefix(prefix)
	if err != nil {
		return err
	}
	index, err := indexOf(link)
	if err != nil {
		return err
	}
	head := []byte{family(p.Addr()), byte(p.Bits()), 0, unix.RT_SCOPE_UNIVERSE}
	if p.Addr().Is6() {
		head[2] = unix.IFA_F_NODAD
	}
	return send("add "+prefix+" to "+link, unix.RTM_NEWADDR, create, slices.Concat(head, number(index),
		attribute(unix.IFA_LOCAL, p.Addr().AsSlice()), attribute(unix.IFA_ADDRESS, p.Addr().AsSlice())))
}

// Route is a route to be added.
type Route struct {
	To    netip.Prefix
	Via   netip.Addr // the zero Addr: none
	Dev   string     // "": the one that leads to Via
	Local bool       // the addresses are this host's own
	Hole  bool       // packets vanish; there is no Via and no Dev
	First bool       // in the table local, which is asked before all others; Local routes always are
}

// Add adds the route.
func (r Route) Add() error { return r.send("add", unix.RTM_NEWROUTE, create) }

// Remove takes it away again.
func (r Route) Remove() error { return r.send("remove", unix.RTM_DELROUTE, 0) }

func (r Route) send(what string, kind, flags int) error {
	table, scope, typ := byte(unix.RT_TABLE_MAIN), byte(unix.RT_SCOPE_UNIVERSE), byte(unix.RTN_UNICAST)
	if r.Local || r.First {
		table = unix.RT_TABLE_LOCAL
	}
	switch {
	case r.Local:
		scope, typ = unix.RT_SCOPE_HOST, unix.RTN_LOCAL
	case r.Hole:
		typ = unix.RTN_BLACKHOLE
	case !r.Via.IsValid():
		scope = unix.RT_SCOPE_LINK
	}
	index := 0
	if r.Dev != "" {
		var err error
		if index, err = indexOf(r.Dev); err != nil {
			return err
		}
	}
	message := []byte{family(r.To.Addr()), byte(r.To.Bits()), 0, 0, table, unix.RTPROT_BOOT, scope, typ, 0, 0, 0, 0}
	if r.To.Bits() > 0 {
		message = append(message, attribute(unix.RTA_DST, r.To.Addr().AsSlice())...)
	}
	if r.Via.IsValid() {
		message = append(message, attribute(unix.RTA_GATEWAY, r.Via.AsSlice())...)
	}
	if index > 0 {
		message = append(message, attribute(unix.RTA_OIF, number(index))...)
	}
	return send(what+" the route to "+r.To.String(), kind, flags, message)
}

// DefaultVia sends what no other route knows to a neighbour.
func DefaultVia(addr string) error {
	via, err := netip.ParseAddr(addr)
	if err != nil {
		return err
	}
	to := All4
	if via.Is6() {
		to = All6
	}
	return Route{To: to, Via: via}.Add()
}

func indexOf(link string) (int, error) {
	i, err := net.InterfaceByName(link)
	if err != nil {
		return 0, fmt.Errorf("link %s: %w", link, err)
	}
	return i.Index, nil
}

func family(a netip.Addr) byte {
	if a.Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// linkMessage is a struct ifinfomsg that sets flags and changes no others.
func linkMessage(index, flags int) []byte {
	return slices.Concat([]byte{unix.AF_UNSPEC, 0, 0, 0}, number(index), number(flags), number(flags))
}

// attribute is a struct rtattr and what it holds, padded.
func attribute(kind int, value []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofRtAttr+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, uint16(kind)), value...)
	return append(b, make([]byte, -len(b)&(unix.RTA_ALIGNTO-1))...)
}

func number(n int) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }

func zero(s string) []byte { return append([]byte(s), 0) }

const create = unix.NLM_F_CREATE | unix.NLM_F_EXCL

// send asks the kernel for one change and waits for its answer.
func send(what string, kind, flags int, message []byte) error {
	if err := exchange(kind, flags, message); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func exchange(kind, flags int, message []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	head := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(message)))
	head = binary.NativeEndian.AppendUint16(head, uint16(kind))
	head = binary.NativeEndian.AppendUint16(head, uint16(unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags))
	head = append(head, make([]byte, 8)...) // sequence and port: one question, one answer
	if err := unix.Sendto(fd, append(head, message...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return err
	}
	answers, err := syscall.ParseNetlinkMessage(buf[:n])
	if err != nil {
		return err
	}
	for _, a := range answers {
		if a.Header.Type == unix.NLMSG_ERROR && len(a.Data) >= 4 {
			if errno := -int32(binary.NativeEndian.Uint32(a.Data)); errno != 0 {
				return unix.Errno(errno)
			}
			return nil
		}
	}
	return fmt.Errorf("no answer in %d bytes", n)
}
