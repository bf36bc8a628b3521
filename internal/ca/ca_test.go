package ca

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
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
			c, err := a.sign(host)
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
