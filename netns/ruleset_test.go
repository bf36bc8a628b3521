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

	"egressd/netns/rules"
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
	rules rules.Set
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
// text as a script gives the same rules.
func TestRulesetAgainstNFT(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("needs the nft program as an oracle")
	}
	for _, r := range rulesets {
		t.Run(r.file, func(t *testing.T) {
			freshNamespace(t)
			apply(t, r.rules)
			golden(t, r.file, nft(t, "list", "ruleset"))
			nft(t, "flush", "ruleset")
			nft(t, "-f", "testdata/"+r.file)
			golden(t, r.file, nft(t, "list", "ruleset"))
		})
	}
}

func nft(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("nft", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("nft %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func apply(t *testing.T, r rules.Set) {
	t.Helper()
	if err := r.Apply(); err != nil {
		t.Fatal(err)
	}
}

// One rule that the kernel can't take: nothing of the transaction stays.
func TestRulesetAllOrNothing(t *testing.T) {
	freshNamespace(t)
	r := rules.Capture(dnsPort, testTransparent, true)
	last := &r.Chains[len(r.Chains)-1]
	last.Rules = append(slices.Clone(last.Rules), rules.Goto("no such chain"))
	if err := r.Apply(); err == nil {
		t.Fatal("a rule that goes nowhere was accepted")
	}
	if _, err := exec.LookPath("nft"); err == nil {
		if got := nft(t, "list", "ruleset"); got != "" {
			t.Errorf("left behind:\n%s", got)
		}
	}
}

func TestEncodingIsDeterministic(t *testing.T) {
	first, err := rules.Capture(dnsPort, testTransparent, true).Encode()
	if err != nil {
		t.Fatal(err)
	}
	second, err := rules.Capture(dnsPort, testTransparent, true).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != len(second) {
		t.Fatalf("%d messages, then %d", len(first), len(second))
	}
	acks := 0
	for i := range first {
		if first[i].Header != second[i].Header || !slices.Equal(first[i].Data, second[i].Data) {
			t.Errorf("message %d differs", i)
		}
		if first[i].Header.Flags&unix.NLM_F_ACK != 0 {
			acks++
		}
	}
	if acks != 1 {
		t.Errorf("%d messages ask for an acknowledgement, want the last rule alone", acks)
	}
}
