package find

import (
	_ "embed"
	"testing"

	"egressd/hermetic/internal/gnu/gnutest"
)

// recorded is what the real commands did (findutils 4.9, with the lines of the output sorted).
//
//go:embed testdata/find.json
var recorded []byte

func TestAsTheRealOnes(t *testing.T) { gnutest.Changes(t, Commands(), recorded, true) }
