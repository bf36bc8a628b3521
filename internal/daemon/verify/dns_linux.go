package verify

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// unlisted is a name that nobody can own (RFC 6761 section 6.4), so no policy
// allows it.
const unlisted = "egressd-verify.invalid"

// optionEDE and blocked are of RFC 8914: Extended DNS Error, code 15.
const (
	optionEDE = 15
	blocked   = 15
)

// dnsAt asks a server for a name that nobody allows. Whatever its address, it
// is egressd that answers, or nobody.
func dnsAt(network, server string) func(context.Context, Config) Result {
	return func(ctx context.Context, config Config) Result {
		ctx, cancel, a := begin(ctx, config, server)
		defer cancel()
		answer, err := ask(ctx, network, server, strings.ToLower(rand.Text())+"."+unlisted+".")
		if err != nil {
			return a.judge(err)
		}
		code, ede := verdictOf(answer)
		if ede {
			return pass("egressd answers: blocked")
		}
		return leak(fmt.Sprintf("somebody answers (%v), not in egressd's words", code), adviseCapture)
	}
}

func ask(ctx context.Context, network, server, name string) (dnsmessage.Message, error) {
	var none dnsmessage.Message
	q, err := question(name)
	if err != nil {
		return none, err
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, server)
	if err != nil {
		return none, err
	}
	defer c.Close()
	setDeadline(ctx, c)
	if network == "tcp" { // RFC 1035 section 4.2.2
		q = append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)
	}
	if _, err := c.Write(q); err != nil {
		return none, err
	}
	b := make([]byte, 64<<10)
	n := 0
	if network == "tcp" {
		if _, err := io.ReadFull(c, b[:2]); err != nil {
			return none, err
		}
		n = int(binary.BigEndian.Uint16(b))
		_, err = io.ReadFull(c, b[:n])
	} else {
		n, err = c.Read(b)
	}
	if err != nil {
		return none, err
	}
	var m dnsmessage.Message
	if err := m.Unpack(b[:n]); err != nil {
		return none, fmt.Errorf("no DNS answer: %w", err)
	}
	return m, nil
}

func question(name string) ([]byte, error) {
	qname, err := dnsmessage.NewName(name)
	if err != nil {
		return nil, err
	}
	var opt dnsmessage.ResourceHeader
	if err := opt.SetEDNS0(1232, dnsmessage.RCodeSuccess, false); err != nil {
		return nil, err
	}
	m := dnsmessage.Message{
		Header:      dnsmessage.Header{ID: 1, RecursionDesired: true},
		Questions:   []dnsmessage.Question{{Name: qname, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
		Additionals: []dnsmessage.Resource{{Header: opt, Body: &dnsmessage.OPTResource{}}},
	}
	return m.Pack()
}

// verdictOf reports the response code, and whether egressd says that it
// blocked the name.
func verdictOf(m dnsmessage.Message) (code dnsmessage.RCode, ede bool) {
	for _, r := range m.Additionals {
		opt, ok := r.Body.(*dnsmessage.OPTResource)
		if !ok {
			continue
		}
		for _, o := range opt.Options {
			if o.Code == optionEDE && len(o.Data) >= 2 && binary.BigEndian.Uint16(o.Data) == blocked {
				ede = true
			}
		}
	}
	return m.RCode, ede
}
