package jq_test

import (
	_ "embed"
	"testing"

	"egressd/hermetic/internal/gnu/gnutest"
)

//go:embed testdata/recorded.json
var recorded []byte

// What jq 1.6 prints, where 1.7 prints the same.
func TestAsTheRealJq(t *testing.T) { gnutest.Recorded(t, commands(), recorded) }
