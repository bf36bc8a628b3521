package policy

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"egressd/policy/internal/grammar"
)

// root reads the top level of a policy file.
func (f *fileParser) root(n *yaml.Node) {
	if !f.plain(n) {
		return
	}
	f.keys(n, "the policy", map[string]func(*yaml.Node){
		"allow":          func(v *yaml.Node) { f.doc.Allow = f.rules(v, "allow", false) },
		"deny":           func(v *yaml.Node) { f.doc.Deny = f.rules(v, "deny", true) },
		"allow_file":     func(v *yaml.Node) { f.doc.AllowFiles = f.listFiles(v, "allow_file", false) },
		"deny_file":      func(v *yaml.Node) { f.doc.DenyFiles = f.listFiles(v, "deny_file", true) },
		"presets":        f.presets,
		"hosts":          f.hosts,
		"dns":            f.dns,
		"secrets":        f.secrets,
		"limits":         f.limits,
		"files":          f.files,
		"upstream_proxy": f.upstream,
		"audit":          f.audit,
		"intranet":       func(v *yaml.Node) { f.doc.Intranet = f.list(v, "intranet") },
	})
}

func (f *fileParser) rules(n *yaml.Node, where string, deny bool) []Entry {
	entries := f.list(n, where)
	for _, e := range entries {
		if _, err := grammar.Parse(e.Text, deny); err != nil {
			f.errs.addError(e.Pos, err)
		}
	}
	lifted := f.lifted[where]
	if len(lifted) == 0 || len(entries) == 0 {
		return append(entries, lifted...)
	}
	all := append(entries, lifted...)
	slices.SortStableFunc(all, func(a, b Entry) int { return a.Pos.Line - b.Pos.Line })
	return all
}

func (f *fileParser) presets(n *yaml.Node) {
	f.doc.Presets = f.list(n, "presets")
	for _, e := range f.doc.Presets {
		if _, ok := PresetText(e.Text); !ok {
			f.errs.add(e.Pos, suggestWord(e.Text, PresetNames()), "there is no preset %q", e.Text)
		}
	}
}

// hosts reads name: address, or name: [address, ...].
func (f *fileParser) hosts(n *yaml.Node) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		f.errs.add(f.pos(n), "write name: address lines", "hosts is %s, not a mapping", kindName(n))
		return
	}
	seen := make(map[Host]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name, ok := f.text(key, "hosts")
		if !ok || !f.plain(value) {
			continue
		}
		if h, err := ParseHost(name); err == nil {
			if line, dup := seen[h]; dup {
				f.errs.add(f.pos(key), "join the two into one list", "host %s stands twice in hosts, first in line %d", h, line)
				continue
			}
			seen[h] = key.Line
		}
		f.host(key, value, name)
	}
}

func (f *fileParser) host(key, value *yaml.Node, name string) {
	items := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		items = value.Content
	}
	if len(items) == 0 {
		f.errs.add(f.pos(value), "write at least one address", "host %s has no address", name)
		return
	}
	for _, item := range items {
		if addr, ok := f.text(item, "hosts"); ok {
			e := Entry{Text: name + "=" + addr, Pos: f.pos(key)}
			_, _, wrong := parseHostsEntry(e)
			f.errs.merge(wrong)
			f.doc.Hosts = append(f.doc.Hosts, e)
		}
	}
}

func (f *fileParser) dns(n *yaml.Node) {
	if isNull(n) {
		return
	}
	f.keys(n, "dns", map[string]func(*yaml.Node){
		"mode": func(v *yaml.Node) {
			text, ok := f.text(v, "dns.mode")
			mode, err := parseDNSMode(text)
			if ok && (err != nil || mode == DNSUnset) {
				f.errs.add(f.pos(v), "write synthetic or forward", "dns.mode %q is not known", text)
			}
			f.doc.DNS.Mode = mode
		},
		"upstreams": func(v *yaml.Node) { f.doc.DNS.Upstreams = f.list(v, "dns.upstreams") },
	})
}

func (f *fileParser) audit(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		f.errs.add(f.pos(n), "write true or false", "audit is %s", kindName(n))
		return
	}
	f.doc.Audit = strings.EqualFold(n.Value, "true")
}

func (f *fileParser) limits(n *yaml.Node) {
	if isNull(n) {
		return
	}
	known := make(map[string]func(*yaml.Node))
	for _, k := range limitKeys() {
		known[k.key()] = func(v *yaml.Node) { k.read(f, v, &f.doc.Limits) }
	}
	f.keys(n, "limits", known)
}

// count reads a whole number from 1 to most.
func (f *fileParser) count(n *yaml.Node, where string, most int64) int64 {
	text, ok := f.text(n, "limits."+where)
	if !ok {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 1 || v > most {
		f.errs.add(f.pos(n), "write a whole number from 1 to "+strconv.FormatInt(most, 10)+", or leave the key out for the default",
			"limits.%s is %q", where, text)
		return 0
	}
	return v
}

func (f *fileParser) rate(n *yaml.Node, where string) float64 {
	text, ok := f.text(n, "limits."+where)
	if !ok {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || v > maxRate {
		f.errs.add(f.pos(n), "write a number above 0, or leave the key out for the default", "limits.%s is %q", where, text)
		return 0
	}
	return v
}
