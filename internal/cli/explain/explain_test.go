package explain

import (
	"strings"
	"testing"

	"egressd/policy"
)

// Every reason has words of its own.
func TestMeaningIsTotal(t *testing.T) {
	seen := make(map[string]policy.Reason)
	for r := policy.ReasonNoPolicy; r <= policy.ReasonInternal; r++ {
		words := Meaning(r)
		if words == "" || words == Meaning(policy.ReasonInternal+1) {
			t.Errorf("%s has no meaning", r)
		}
		if other, twice := seen[words]; twice {
			t.Errorf("%s and %s mean the same: %s", r, other, words)
		}
		seen[words] = r
	}
}

// A preset is shown as it is written, with the sources of its rules.
func TestPreset(t *testing.T) {
	npm, _ := policy.PresetText("npm")
	golang, _ := policy.PresetText("go")
	if text, err := Preset("egressd", []string{"npm", "go"}); err != nil || text != npm+golang || !strings.HasPrefix(text, "# ") {
		t.Errorf("got %q, %v", text, err)
	}
	if text, err := Preset("egressd", []string{"npm", "nope"}); err == nil || text != "" || !strings.Contains(err.Error(), "egressd presets lists them") {
		t.Errorf("got %q, %v", text, err)
	}
}
