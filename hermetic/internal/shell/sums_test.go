package shell

import (
	"strings"
	"testing"
)

// TestSubscriptsOfThemselves evaluates names whose subscripts name them: it ends
// where bash ends it, long before the stack.
func TestSubscriptsOfThemselves(t *testing.T) {
	for _, script := range []string{
		`a='b[a]'; b='a[b]'; echo $((a[b]))`,
		`b='a[a[a]]'; a=b; echo $((a))`,
		`b='a[a[a]]'; a=b; let a`,
	} {
		b := newBench(t)
		if _, err := b.run(t.Context(), t, script+"\necho after"); err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		if out := b.errs.String(); !strings.Contains(out, "expression recursion level exceeded") || len(out) > 1000 {
			t.Errorf("%s: %.300q", script, out)
		}
	}
}
