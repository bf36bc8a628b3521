package dnsfilter

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"egressd/test/iproute"
)

// TestAnyAddressIsAnswered asks addresses that are local by route alone, as in
// a captured namespace whose kernel has no nftables.
func TestAnyAddressIsAnswered(t *testing.T) {
	skip := make(chan string, 1)
	go func() {
		defer close(skip)
		// Never unlocked: the thread dies with the goroutine, and the namespace with it.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			skip <- "no network namespace here: " + err.Error()
			return
		}
		if err := errors.Join(iproute.Up("lo"), iproute.Route{To: iproute.All4, Dev: "lo", Local: true}.Add(),
			iproute.Route{To: iproute.All6, Dev: "lo", Local: true}.Add()); err != nil {
			skip <- err.Error()
			return
		}
		pc, err := net.ListenPacket("udp", ":0")
		if err != nil {
			t.Error(err)
			return
		}
		s := &Server{Policy: compile(t, "", "allowed.test"), Events: &recorder{}}
		s.Pins, _ = NewPins(zeroPrefix)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, pc, nil) }()
		defer func() { cancel(); <-ended }()
		_, port, _ := net.SplitHostPort(pc.LocalAddr().String())
		for _, addr := range []string{"8.8.8.8", "2001:4860:4860::8888"} {
			conn, err := net.Dial("udp", net.JoinHostPort(addr, port)) // from this thread, so from inside
			if err != nil {
				t.Error(err)
				continue
			}
			m := new(dns.Msg)
			m.SetQuestion("allowed.test.", dns.TypeA)
			in, _, err := new(dns.Client).ExchangeWithConn(m, &dns.Conn{Conn: conn})
			if err != nil || len(in.Answer) != 1 {
				t.Errorf("asked at %s: %v, %v", addr, in, err)
			}
			_ = conn.Close()
		}
	}()
	if why := <-skip; why != "" {
		t.Skip(why)
	}
}
