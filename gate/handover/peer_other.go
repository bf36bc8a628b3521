//go:build !linux

package handover

import (
	"net"

	"egressd/netns"
)

type peer struct{ uid uint32 }

func (p peer) String() string { return "" }

func peerOf(*net.UnixConn) (peer, error) { return peer{}, netns.ErrNotSupported }
