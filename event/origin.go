package event

import (
	"maps"
	"slices"
)

// schemaVersion is the version of the lines that this program writes, their key "v". It
// changes when a reader of the version before could misread a line; a new key or a
// new word is no such change.
const schemaVersion = 1

// bootBytes is the length of a boot: 80 random bits. Implementation constant.
const bootBytes = 16

// origin says who writes a record: one start of one program, and where that runs. Every
// line of a [Writer] that has one ends with it, so that records of many machines and
// starts can be put together: (boot, seq) names a line. It is immutable.
type origin struct {
	boot string
	text []byte // as it stands in every line, from a comma on; encoded once
}

// newOrigin encodes an origin. A string longer than most is cut.
func newOrigin(boot string, resource map[string]string, most int) *origin {
	b := object{most: most}
	b.uint("v", schemaVersion)
	b.text("boot", boot)
	if len(resource) > 0 {
		b.key("resource")
		b.attributes(resource)
	}
	return &origin{boot: boot, text: b.b}
}

// attributes appends an object of its own. Its keys are an operator's, and escaped.
func (o *object) attributes(list map[string]string) {
	separator := byte('{')
	for _, key := range slices.Sorted(maps.Keys(list)) {
		o.b = append(o.b, separator)
		o.b = appendString(o.b, key, o.most)
		o.b = append(o.b, ':')
		o.b = appendString(o.b, list[key], o.most)
		separator = ','
	}
	o.b = append(o.b, '}')
}
