//go:build !linux

package session

import (
	"egressd/internal/gate"
	"egressd/netns"
)

func (s Sockets) doors() (gate.Doors, error) { return gate.Doors{}, netns.ErrNotSupported }

func shutOnClose(d gate.Doors) gate.Doors { return d }
