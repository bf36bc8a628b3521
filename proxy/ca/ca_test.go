package ca

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func verify(t *testing.T, a *Authority, c *tls.Certificate, name string, at time.Time) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.PEM()) {
		t.Fatal("PEM is no certificate")
	}
	_, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at})
	return err
}

func TestLeafVerifies(t *testing.T) {
	a, err := New([]string{"api.example.com", "*.example.net", "192.0.2.7"})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"api.example.com", "a.b.example.net", "192.0.2.7"} {
		c, err := a.Leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{time.Now(), time.Now().Add(-59 * time.Minute), time.Now().Add(23 * time.Hour)} {
			if err := verify(t, a, c, host, at); err != nil {
				t.Errorf("%s at %v: %v", host, at, err)
			}
		}
		if verify(t, a, c, "evil.example", time.Now()) == nil {
			t.Errorf("the leaf of %s stands for another host", host)
		}
	}
}

func TestLeafOutside(t *testing.T) {
	a, err := New([]string{"api.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"example.com", "xapi.example.com", "evil.test", "192.0.2.7", ""} {
		if _, err := a.Leaf(host); !errors.Is(err, ErrOutside) {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// Even with the key in hand, clients refuse what the constraints leave out.
func TestConstraintsBind(t *testing.T) {
	for _, hosts := range [][]string{{"api.example.com"}, {"192.0.2.7"}} {
		a, err := New(hosts)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"evil.test", "198.51.100.1", "2001:db8::1"} {
			c, err := a.issuers[0].sign(host, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if verify(t, a, c, host, time.Now()) == nil {
				t.Errorf("a CA for %v vouches for %s", hosts, host)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, hosts := range [][]string{nil, {""}, {"*"}, {"a*b.com"}, {"http://x"}, {"*.*.com"}} {
		if _, err := New(hosts); err == nil {
			t.Errorf("%q: made", hosts)
		}
	}
}

func TestLeafIsMadeOnce(t *testing.T) {
	a, err := New([]string{"example.com"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	got := make([]*tls.Certificate, 16)
	for i := range got {
		wg.Go(func() { got[i], _ = a.Leaf("example.com") })
	}
	wg.Wait()
	for _, c := range got {
		if c == nil || c != got[0] {
			t.Fatal("more than one leaf was made")
		}
	}
}

func TestLeavesAreBoundedAndRenewed(t *testing.T) {
	now := time.Now()
	a, err := newAt([]string{"example.com"}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	first, _ := a.Leaf("example.com")
	for i := range leafMax + 10 {
		a.slot(fmt.Sprint(i))
	}
	if len(a.leaves) > leafMax {
		t.Errorf("%d leaves kept", len(a.leaves))
	}
	now = now.Add(leafLife/2 + time.Second)
	second, _ := a.Leaf("example.com")
	if first == second || !second.Leaf.NotAfter.After(first.Leaf.NotAfter) {
		t.Error("an old leaf is not renewed")
	}
}

// An agent may be left running for weeks.
func TestLongSession(t *testing.T) {
	now := time.Now()
	a, err := newAt([]string{"example.com"}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(30 * 24 * time.Hour)
	c, err := a.Leaf("example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, a, c, "example.com", now); err != nil {
		t.Error(err)
	}
}

func TestBundle(t *testing.T) {
	a, err := New([]string{"example.com"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New([]string{"example.net"})
	if err != nil {
		t.Fatal(err)
	}
	bundle := a.Bundle(bytes.TrimSpace(b.PEM()))
	n := 0
	for rest := bundle; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			t.Errorf("the bundle holds a %s", block.Type)
		}
	}
	if n != 2 {
		t.Errorf("%d certificates in the bundle", n)
	}
}

// A daemon's policy may open more hosts later on: clients that trust what they
// trusted at first still reach what they reached.
func TestExtend(t *testing.T) {
	a := new(Authority)
	if _, err := a.Leaf("a.example.com"); !errors.Is(err, ErrOutside) {
		t.Fatalf("the zero Authority signs: %v", err)
	}
	for _, step := range []struct {
		hosts   []string
		changed bool
	}{
		{nil, false},
		{[]string{"a.example.com"}, true},
		{[]string{"a.example.com", "x.a.example.com"}, false},
		{[]string{"a.example.com", "b.example.com", "192.0.2.7"}, true},
		{[]string{"b.example.com"}, false},
	} {
		if changed, err := a.Extend(step.hosts); err != nil || changed != step.changed {
			t.Fatalf("%v: %v, %v", step.hosts, changed, err)
		}
	}
	old := new(Authority)
	old.issuers = a.issuers[:1]
	leaf, err := a.Leaf("a.example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, old, leaf, "a.example.com", time.Now()); err != nil {
		t.Errorf("who trusts the first certificate alone: %v", err)
	}
	for _, host := range []string{"b.example.com", "192.0.2.7"} {
		leaf, err := a.Leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t, a, leaf, host, time.Now()); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if verify(t, old, leaf, host, time.Now()) == nil {
			t.Errorf("the first certificate vouches for %s", host)
		}
	}
	if _, err := a.Extend([]string{"*"}); err == nil {
		t.Error("everything is a host")
	}
}

// A certificate that ends soon is replaced at the next chance.
func TestExtendRenews(t *testing.T) {
	now := time.Now()
	a, err := newAt([]string{"example.com"}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(caLife - time.Hour)
	if changed, err := a.Extend([]string{"example.com"}); err != nil || !changed {
		t.Fatal(changed, err)
	}
	leaf, err := a.Leaf("example.com")
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, a, leaf, "example.com", now.Add(2*time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestExtendIsBounded(t *testing.T) {
	a := new(Authority)
	for i := range issuersMax {
		if _, err := a.Extend([]string{fmt.Sprintf("h%d.example", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Extend([]string{"one.more.example"}); err == nil {
		t.Error("certificates without end")
	}
}

// Threat: a session's policy of 4 MiB names as many hosts as fit, to keep the
// daemon that serves others busy -> their number costs in proportion.
func TestManyHosts(t *testing.T) {
	hosts := make([]string, 60_000)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("h%d.example.com", i)
	}
	part, whole := authorityCost(t, hosts[:len(hosts)/8]), authorityCost(t, hosts)
	if whole > 32*part { // all against all takes 64 times as long
		t.Errorf("%d hosts take %v of a processor, an eighth of them %v", len(hosts), whole, part)
	}
}

// authorityCost is the processor time, which load does not change, of an authority
// for hosts that is asked for the same again.
func authorityCost(t *testing.T, hosts []string) time.Duration {
	t.Helper()
	begin := processorTime(t)
	a, err := New(hosts)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := a.Extend(hosts); changed || err != nil {
		t.Errorf("the same hosts again: changed %v, %v", changed, err)
	}
	return processorTime(t) - begin
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The clock is set, forward or back, or the machine was asleep: what clients get
// is valid by the time of day.
func TestClockJumps(t *testing.T) {
	begin := time.Now()
	for _, jump := range []time.Duration{48 * time.Hour, 13 * time.Hour, -2 * time.Hour, -6 * 24 * time.Hour} {
		now := begin
		a, err := newAt([]string{"example.com"}, func() time.Time { return now.Round(0) })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Leaf("example.com"); err != nil {
			t.Fatal(err)
		}
		now = begin.Add(jump)
		c, err := a.Leaf("example.com")
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t, a, c, "example.com", now); err != nil {
			t.Errorf("after %v: %v", jump, err)
		}
	}
	if text := new(Authority).clock().String(); strings.Contains(text, "m=") {
		t.Errorf("%s holds a monotonic reading, which goes on while the time of day jumps", text)
	}
}
