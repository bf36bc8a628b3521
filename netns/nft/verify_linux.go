package nft

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
)

// ErrDiffers is wrapped by what [Table.Verify] reports if other rules, or none,
// are installed.
var ErrDiffers = errors.New("the installed rules differ")

// Verify reads the table back and compares it with t: everything in t must be
// there, in order, and nothing else. c is a connection to NETLINK_NETFILTER.
func (t Table) Verify(c netlink.Conn) error {
	if err := t.verifyAwake(c); err != nil {
		return err
	}
	if err := t.verifyChains(c); err != nil {
		return err
	}
	return t.verifyRules(c)
}

// Exists reports whether there is a table of t's family and name, whatever is
// in it.
func (t Table) Exists(c netlink.Conn) (bool, error) {
	tables, err := t.read(c, unix.NFT_MSG_GETTABLE, unix.NFTA_TABLE_NAME)
	return len(tables) > 0, err
}

// verifyAwake checks that the table is there and not dormant.
func (t Table) verifyAwake(c netlink.Conn) error {
	tables, err := t.read(c, unix.NFT_MSG_GETTABLE, unix.NFTA_TABLE_NAME)
	if err != nil {
		return err
	}
	if len(tables) != 1 {
		return fmt.Errorf("%w: there is no table %s %s", ErrDiffers, t.Family, t.Name)
	}
	flags := netlink.Find(tables[0], unix.NFTA_TABLE_FLAGS)
	if len(flags) == 4 && binary.BigEndian.Uint32(flags) != 0 {
		return fmt.Errorf("%w: the table has flags %d", ErrDiffers, binary.BigEndian.Uint32(flags))
	}
	return nil
}

func (t Table) verifyChains(c netlink.Conn) error {
	chains, err := t.read(c, unix.NFT_MSG_GETCHAIN, unix.NFTA_CHAIN_TABLE)
	if err != nil {
		return err
	}
	if len(chains) != len(t.Chains) {
		return fmt.Errorf("%w: %d chains instead of %d", ErrDiffers, len(chains), len(t.Chains))
	}
	for _, want := range t.Chains {
		found := false
		for _, have := range chains {
			if text(have, unix.NFTA_CHAIN_NAME) != want.Name {
				continue
			}
			hooked := netlink.Find(have, unix.NFTA_CHAIN_HOOK) != nil
			found = contains(have, t.chain(want), false) && hooked == (want.Base != nil)
		}
		if !found {
			return fmt.Errorf("%w: chain %s", ErrDiffers, want.Name)
		}
	}
	return nil
}

func (t Table) verifyRules(c netlink.Conn) error {
	rules, err := t.read(c, unix.NFT_MSG_GETRULE, unix.NFTA_RULE_TABLE)
	if err != nil {
		return err
	}
	have := map[string][][]netlink.Raw{}
	for _, r := range rules {
		chain := text(r, unix.NFTA_RULE_CHAIN)
		have[chain] = append(have[chain], r)
	}
	for _, want := range t.Chains {
		if len(have[want.Name]) != len(want.Rules) {
			return fmt.Errorf("%w: chain %s has %d rules instead of %d", ErrDiffers, want.Name, len(have[want.Name]), len(want.Rules))
		}
		for i, r := range want.Rules {
			if !contains(have[want.Name][i], t.rule(want.Name, r), false) {
				return fmt.Errorf("%w: rule %d of chain %s is not %q", ErrDiffers, i+1, want.Name, r)
			}
		}
	}
	return nil
}

// read lists what belongs to the table. kind is the attribute in which each
// answer names its table.
func (t Table) read(c netlink.Conn, get, kind uint16) ([][]netlink.Raw, error) {
	m := t.message(get, 0)
	m.About = "read the rules back"
	answers, err := c.Dump(m)
	for i := 0; errors.Is(err, unix.EINTR) && i < 10; i++ { // rules changed meanwhile
		answers, err = c.Dump(m)
	}
	if err != nil {
		return nil, err
	}
	var ours [][]netlink.Raw
	for _, a := range answers {
		if len(a.Data) < 4 || a.Data[0] != t.family() {
			continue
		}
		attrs, err := netlink.Parse(a.Data[4:])
		if err != nil {
			return nil, err
		}
		if text(attrs, kind) == t.Name {
			ours = append(ours, attrs)
		}
	}
	return ours, nil
}

func text(attrs []netlink.Raw, kind uint16) string {
	return strings.TrimRight(string(netlink.Find(attrs, kind)), "\x00")
}

// contains reports whether every attribute of want is among those the kernel
// has, and, in a list, no other. The kernel adds attributes of its own.
func contains(have []netlink.Raw, want []netlink.Attr, list bool) bool {
	if list && len(have) != len(want) {
		return false
	}
	for i, w := range want {
		var data []byte
		if list {
			data = have[i].Data
			if have[i].Kind != w.Kind {
				return false
			}
		} else {
			data = netlink.Find(have, w.Kind)
		}
		if w.Inner == nil {
			if !bytes.Equal(data, w.Data) {
				return false
			}
			continue
		}
		inner, err := netlink.Parse(data)
		if err != nil || !contains(inner, w.Inner, w.List) {
			return false
		}
	}
	return true
}
