//go:build !linux

package handover

import (
	"egressd/gate"
	"egressd/netns"
)

func (s Sockets) doors() (gate.Doors, error) { return gate.Doors{}, netns.ErrNotSupported }

func guard(d gate.Doors, _ ...chan struct{}) (gate.Doors, error) { return d, netns.ErrNotSupported }
