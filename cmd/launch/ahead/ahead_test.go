package ahead

import (
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	for line, want := range map[string]bool{
		"launch":                                false,
		"launch --":                             false,
		"launch -- true":                        true,
		"launch --allow example.com -- curl -v": true,
		"launch --policy=p.yaml --quiet -- sh -c x": true,
		"launch -- program --user x":                true,
		"launch check -- true":                      false,
		"launch --isolation=env -- true":            false,
		"launch --isolation env -- true":            false,
		"launch -user dev -- true":                  false,
		"launch --publish 80 -- true":               false,
		"launch --tier hermetic -- sh -c true":      false,
		"launch --host-port=localhost:5432 -- true": false,
		"launch --help -- true":                     false,
		"launch --allow example.com":                false,
		"launch-init -- true":                       false,
	} {
		if got := plain(strings.Fields(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
