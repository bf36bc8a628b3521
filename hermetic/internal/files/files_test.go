package files

import (
	_ "embed"
	"testing"

	"egressd/hermetic/internal/gnu/gnutest"
)

// recorded is what the real commands did (coreutils 9.1, tree 2.1.0, file 5.44).
//
//go:embed testdata/files.json
var recorded []byte

func TestAsTheRealOnes(t *testing.T) { gnutest.Changes(t, Commands(), recorded, false) }
