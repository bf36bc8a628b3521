package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"egressd/test/e2e/job"
)

// doorDNS asks one question over UDP (or TCP, where Via begins with "tcp://")
// and reports the RCODE and the addresses. Raw replaces the encoded name.
func doorDNS(j job.Job) job.Result {
	network, server := "udp", j.Via
	if rest, ok := strings.CutPrefix(server, "tcp://"); ok {
		network, server = "tcp", rest
	}
	if server == "" {
		server = net.JoinHostPort(nameserver(), "53")
	}
	query := question(j)
	c, err := net.DialTimeout(network, server, stepTimeout)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(stepTimeout)); err != nil {
		return fail(err)
	}
	if network == "tcp" {
		query = append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)
	}
	if _, err := c.Write(query); err != nil {
		return fail(err)
	}
	buf := make([]byte, 4096)
	n, err := readDNS(c, network, buf)
	if err != nil {
		return local(c, fail(fmt.Errorf("no DNS answer: %w", err)))
	}
	return local(c, readAnswer(buf[:n]))
}

func readDNS(c net.Conn, network string, buf []byte) (int, error) {
	if network == "udp" {
		return c.Read(buf)
	}
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return 0, err
	}
	n := min(int(binary.BigEndian.Uint16(size[:])), len(buf))
	return io.ReadFull(c, buf[:n])
}

// question encodes one query. The name is taken byte for byte between dots, so
// that odd labels go out as they are.
func question(j job.Job) []byte {
	qtype, qclass := j.QType, j.QClass
	if qtype == 0 {
		qtype = 1
	}
	if qclass == 0 {
		qclass = 1
	}
	q := []byte{0x13, 0x37, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	if j.Raw != nil {
		return append(q[:0:0], j.Raw...) // the whole message
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(j.Host, "."), ".") {
		if len(label) > 63 {
			label = label[:63]
		}
		q = append(append(q, byte(len(label))), label...)
	}
	q = append(q, 0)
	q = binary.BigEndian.AppendUint16(q, qtype)
	return binary.BigEndian.AppendUint16(q, qclass)
}

// readAnswer reads the header, skips the question and collects addresses (and
// the types of other records, as "type N").
func readAnswer(m []byte) job.Result {
	if len(m) < 12 {
		return fail(errors.New("a short DNS answer"))
	}
	r := job.Result{Status: int(m[3] & 15), Done: true}
	off := 12
	for range binary.BigEndian.Uint16(m[4:]) {
		off = skipName(m, off) + 4
	}
	for range binary.BigEndian.Uint16(m[6:]) {
		off = skipName(m, off)
		if off+10 > len(m) {
			break
		}
		typ, size := binary.BigEndian.Uint16(m[off:]), int(binary.BigEndian.Uint16(m[off+8:]))
		off += 10
		if off+size > len(m) {
			break
		}
		if a, ok := netip.AddrFromSlice(m[off : off+size]); ok && (typ == 1 || typ == 28) {
			r.Answers = append(r.Answers, a.String())
		} else {
			r.Answers = append(r.Answers, fmt.Sprintf("type %d", typ))
		}
		off += size
	}
	return r
}

func skipName(m []byte, off int) int {
	for off < len(m) {
		switch l := int(m[off]); {
		case l == 0:
			return off + 1
		case l >= 0xc0:
			return off + 2
		default:
			off += 1 + l
		}
	}
	return len(m)
}

// nameserver is the first one of resolv.conf.
func nameserver() string {
	f, err := os.Open("/etc/resolv.conf")
	if err != nil {
		return "127.0.0.53"
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if w := strings.Fields(sc.Text()); len(w) >= 2 && w[0] == "nameserver" {
			return w[1]
		}
	}
	return "127.0.0.53"
}
