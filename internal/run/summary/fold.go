package summary

import (
	"slices"
	"strings"

	"egressd/policy"
)

// Long lists are folded: from so many lines on, so many names of one zone.
const (
	foldFrom  = 8
	foldNames = 4
)

// zoneKey is what the names of one folded line have in common.
type zoneKey struct {
	zone   string
	port   uint16
	reason policy.Reason
}

// zone is where t belongs when the list is folded. ok is false for what is not.
func (t *total) zoneKey() (k zoneKey, ok bool) {
	labels := strings.Split(t.host.Name(), ".")
	if len(labels) < 3 || t.method != "" || t.proto != "" || t.port == 0 || !t.listable() {
		return zoneKey{}, false
	}
	return zoneKey{strings.Join(labels[len(labels)-2:], "."), t.port, t.reason}, true
}

// fold is list with one line for the many names of a zone, where the first of them
// was. It leaves list as it is.
func fold(list []*total) []*total {
	if len(list) < foldFrom {
		return list
	}
	zones := make(map[zoneKey]*total)
	for _, t := range list {
		if k, ok := t.zoneKey(); ok {
			if zones[k] == nil {
				zones[k] = &total{key: t.key, zone: k.zone}
			}
			zones[k].count += t.count
			zones[k].names++
		}
	}
	var out []*total
	for _, t := range list {
		k, ok := t.zoneKey()
		switch {
		case !ok || zones[k].names < foldNames:
			out = append(out, t)
		case !slices.Contains(out, zones[k]):
			out = append(out, zones[k])
		}
	}
	return out
}
