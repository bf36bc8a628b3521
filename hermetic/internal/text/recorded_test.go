package text

import (
	_ "embed"
	"testing"

	"egressd/hermetic/internal/gnu/gnutest"
)

//go:embed testdata/recorded.json
var recorded []byte

// What coreutils 9.1, util-linux 2.38 and the rest of Debian 12 print.
func TestAsTheRealTools(t *testing.T) { gnutest.Recorded(t, Commands(), recorded) }
