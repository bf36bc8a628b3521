package run

import (
	_ "embed"
	"testing"

	"egressd/hermetic/internal/gnu/gnutest"
)

// recorded is what the real commands did (coreutils 9.1, findutils 4.9, util-linux 2.38).
//
//go:embed testdata/run.json
var recorded []byte

func TestAsTheRealOnes(t *testing.T) { gnutest.Changes(t, Commands(), recorded, false) }
