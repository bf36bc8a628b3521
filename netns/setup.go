package netns

import "egressd/netns/capture"

// How a namespace is captured, and what serves it then: see package capture,
// which pid 1 of a sandbox uses without the rest of this one.
type (
	Mode    = capture.Mode
	Capture = capture.Config
	Doors   = capture.Doors
)

// The modes of capture.
const (
	ModeAuto  = capture.ModeAuto
	ModeNFT   = capture.ModeNFT
	ModeAnyIP = capture.ModeAnyIP
)
