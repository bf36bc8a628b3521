package pod

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// errDiffers is wrapped by what verify reports when other rules are installed.
var errDiffers = errors.New("the installed rules differ")

// verify reads the table back and compares it with t: each thing that we ask
// for must be there, in order, and nothing else.
func (t table) verify(c *conn) error {
	if err := t.verifyAwake(c); err != nil {
		return err
	}
	if err := t.verifyChains(c); err != nil {
		return err
	}
	return t.verifyRules(c)
}

// verifyAwake finds out whether somebody put the table to sleep.
func (t table) verifyAwake(c *conn) error {
	tables, err := t.read(c, unix.NFT_MSG_GETTABLE, unix.NFTA_TABLE_NAME)
	if err != nil {
		return err
	}
	if len(tables) != 1 {
		return fmt.Errorf("%w: there is no table %s %s", errDiffers, t.familyName(), tableName)
	}
	flags := find(tables[0], unix.NFTA_TABLE_FLAGS)
	if len(flags) == 4 && binary.BigEndian.Uint32(flags) != 0 {
		return fmt.Errorf("%w: the table has flags %d", errDiffers, binary.BigEndian.Uint32(flags))
	}
	return nil
}

func (t table) verifyChains(c *conn) error {
	chains, err := t.read(c, unix.NFT_MSG_GETCHAIN, unix.NFTA_CHAIN_TABLE)
	if err != nil {
		return err
	}
	if len(chains) != len(t.chains) {
		return fmt.Errorf("%w: %d chains instead of %d", errDiffers, len(chains), len(t.chains))
	}
	for _, want := range t.chains {
		found := false
		for _, have := range chains {
			if nameOf(have, unix.NFTA_CHAIN_NAME) != want.name {
				continue
			}
			hooked := find(have, unix.NFTA_CHAIN_HOOK) != nil
			found = contains(have, want.attrs(), false) && hooked == (want.base != nil)
		}
		if !found {
			return fmt.Errorf("%w: chain %s", errDiffers, want.name)
		}
	}
	return nil
}

func (t table) verifyRules(c *conn) error {
	rules, err := t.read(c, unix.NFT_MSG_GETRULE, unix.NFTA_RULE_TABLE)
	if err != nil {
		return err
	}
	have := map[string][][]rawAttr{}
	for _, r := range rules {
		chain := nameOf(r, unix.NFTA_RULE_CHAIN)
		have[chain] = append(have[chain], r)
	}
	for _, want := range t.chains {
		if len(have[want.name]) != len(want.rules) {
			return fmt.Errorf("%w: chain %s has %d rules instead of %d", errDiffers, want.name, len(have[want.name]), len(want.rules))
		}
		for i, r := range want.rules {
			if !contains(have[want.name][i], r.attrs(want.name), false) {
				return fmt.Errorf("%w: rule %d of chain %s is not %q", errDiffers, i+1, want.name, r)
			}
		}
	}
	return nil
}

// read dumps what belongs to our table of t's family. kind is where each
// answer names its table.
func (t table) read(c *conn, get, kind uint16) ([][]rawAttr, error) {
	m := nftMessage(get, 0, t.family)
	m.about = "read the rules back"
	answers, err := c.dump(m)
	for i := 0; errors.Is(err, unix.EINTR) && i < 10; i++ { // somebody changed rules meanwhile
		answers, err = c.dump(m)
	}
	if err != nil {
		return nil, err
	}
	var ours [][]rawAttr
	for _, a := range answers {
		if len(a.Data) < 4 || a.Data[0] != t.family {
			continue
		}
		attrs, err := parseAttrs(a.Data[4:])
		if err != nil {
			return nil, err
		}
		if nameOf(attrs, kind) == tableName {
			ours = append(ours, attrs)
		}
	}
	return ours, nil
}

func nameOf(attrs []rawAttr, kind uint16) string {
	return strings.TrimRight(string(find(attrs, kind)), "\x00")
}

// contains reports whether each attribute that we want is among what the
// kernel has, and, in a list, no other. The kernel adds attributes of its own.
func contains(have []rawAttr, want []attr, list bool) bool {
	if list && len(have) != len(want) {
		return false
	}
	for i, w := range want {
		var data []byte
		if list {
			data = have[i].data
			if have[i].kind != w.kind {
				return false
			}
		} else {
			data = find(have, w.kind)
		}
		if w.inner == nil {
			if !bytes.Equal(data, w.data) {
				return false
			}
			continue
		}
		inner, err := parseAttrs(data)
		if err != nil || !contains(inner, w.inner, w.list) {
			return false
		}
	}
	return true
}
