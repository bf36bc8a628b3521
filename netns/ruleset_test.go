//go:build linux

package netns

import (
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/netns/capture/rules"
	"egressd/netns/netlink"
	"egressd/netns/nft"
)

var update = flag.Bool("update", false, "rewrite testdata")

const testTransparent = 3129

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant %s:\n%s", got, file, want)
	}
}

var rulesets = []struct {
	file  string
	rules nft.Table
}{
	{"capture.nft", rules.Capture(dnsPort, testTransparent, true)},
	{"capture-unrecorded.nft", rules.Capture(dnsPort, testTransparent, false)},
}

func TestRulesetText(t *testing.T) {
	for _, r := range rulesets {
		golden(t, r.file, r.rules.String())
	}
}

// The nft program is the oracle: what we sent is what the text says, and the
// text as a script gives the same rules, expression by expression.
func TestRulesetAgainstNFT(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("needs the nft program as an oracle")
	}
	for _, r := range rulesets {
		t.Run(r.file, func(t *testing.T) {
			freshNamespace(t)
			apply(t, r.rules)
			golden(t, r.file, runNFT(t, "list", "ruleset"))
			runNFT(t, "flush", "ruleset")
			runNFT(t, "-f", "testdata/"+r.file)
			golden(t, r.file, runNFT(t, "list", "ruleset"))
			if err := r.rules.Verify(netfilter(t)); err != nil {
				t.Errorf("what nft makes of the text are other expressions: %v", err)
			}
		})
	}
}

func runNFT(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("nft", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("nft %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// add installs a table as package capture does: without replacing one.
func add(t *testing.T, r nft.Table) error {
	t.Helper()
	c := netfilter(t)
	return netlink.First(c.Send(netlink.Batch(r.Messages())))
}

func netfilter(t *testing.T) netlink.Conn {
	t.Helper()
	c, err := netlink.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func apply(t *testing.T, r nft.Table) {
	t.Helper()
	if err := add(t, r); err != nil {
		t.Fatal(err)
	}
}

// One rule that the kernel can't take: nothing of the transaction stays.
func TestRulesetAllOrNothing(t *testing.T) {
	freshNamespace(t)
	r := rules.Capture(dnsPort, testTransparent, true)
	last := &r.Chains[len(r.Chains)-1]
	last.Rules = append(slices.Clone(last.Rules), nft.Rule{nft.Goto("no such chain")})
	if err := add(t, r); err == nil {
		t.Fatal("a rule that goes nowhere was accepted")
	}
	if _, err := exec.LookPath("nft"); err == nil {
		if got := runNFT(t, "list", "ruleset"); got != "" {
			t.Errorf("left behind:\n%s", got)
		}
	}
}

func TestEncodingIsDeterministic(t *testing.T) {
	first := netlink.Batch(rules.Capture(dnsPort, testTransparent, true).Messages())
	second := netlink.Batch(rules.Capture(dnsPort, testTransparent, true).Messages())
	if len(first) != len(second) {
		t.Fatalf("%d messages, then %d", len(first), len(second))
	}
	acks := 0
	for i := range first {
		if first[i].Kind != second[i].Kind || first[i].Flags != second[i].Flags || !slices.Equal(first[i].Body, second[i].Body) {
			t.Errorf("message %d differs", i)
		}
		if first[i].Flags&unix.NLM_F_ACK != 0 {
			acks++
		}
	}
	if acks != 1 {
		t.Errorf("%d messages ask for an acknowledgement, want the last rule alone", acks)
	}
}
