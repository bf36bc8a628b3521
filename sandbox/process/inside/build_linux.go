package inside

import (
	"errors"
	"fmt"

	"egressd/internal/linux/mountinfo"
	"egressd/netns/capture"
)

// builder sets up every layer. Its first half, begin, is the same for every run,
// and can be done before anything is known about this one.
type builder struct {
	*initProcess
	links *capture.Linked
	doors *capture.Doors // nil until they are open

	// What was picked up before the first mount hides it.
	mounts  mountinfo.Table
	devices []device
	binds   []tree // one for each of the plan's; -1: it is gone
	shown   []tree // one for each that the plan shows
	places  []tree // one for each of the plan's places; -1: nothing was picked up
	cgroup  tree   // -1: none

	scratch tree // the file system behind every private directory; 0: not made yet
	rooms   int  // directories of it in use
}

// begin builds what every run needs. A kernel without nftables must know the
// policy's ports to open its doors, and does that at the end. The network and
// the file system have nothing in common, but another thread to do the two side
// by side takes as long to start as it saves.
func (b *builder) begin() error {
	err := b.openDoors(capture.Config{Mode: capture.ModeNFT})
	if err == nil {
		err = b.sendDoors()
	}
	if err != nil && !errors.Is(err, capture.ErrNotSupported) {
		return &stepError{"network", err}
	}
	return b.hide()
}

// finish builds what depends on the configuration, and everything else unless
// it has begun.
func (b *builder) finish(begun bool) error {
	if b.doors == nil {
		c := b.cfg.Capture
		err := b.openDoors(capture.Config{Mode: capture.Mode(c.Mode), Ports: c.Ports, Reserved: c.Reserved})
		if err == nil {
			err = b.sendDoors()
		}
		if err != nil {
			return &stepError{"network", err}
		}
	}
	var err error
	if begun {
		err = b.steps([]step{{"overlay", b.overlay}, {"pick", b.pickBinds}})
	} else {
		err = b.hide(step{"overlay", b.overlay}, step{"pick", b.pickBinds})
	}
	if err != nil {
		return err
	}
	return b.steps([]step{
		{"read-only", b.readOnly},
		{"private", b.mountPrivate},
		{"binds", b.bringBack},
		{"files", b.mountPlaces},
		{"nested", b.mountNested},
		{"scratch", b.dropScratch},
		{"places", b.makePlaces},
		{"shown", b.show},
		{"names", b.mountNames},
		{"protect", b.protect},
		{"hidden", b.hideDirs},
		{"sockets", b.maskSockets},
	})
}

// hide replaces the host's devices, settings and processes. What is needed of
// them is picked up first, and what more does.
func (b *builder) hide(more ...step) error {
	err := b.steps(append([]step{{"alone", makePrivate}, {"list", b.listMounts}, {"pick", b.pickUp}}, more...))
	if err != nil {
		return err
	}
	return b.steps([]step{
		{"devices", forbidDevices},
		{"proc", b.mountProc},
		{"sys", b.mountSys},
		{"dev", b.mountDev},
		{"elsewhere", b.coverElsewhere},
		{"terminal", b.ownTerminal},
	})
}

// step is one layer of the file system.
type step struct {
	name string
	do   func() error
}

func (b *builder) steps(steps []step) error {
	for _, s := range steps {
		if b.skips(s.name) {
			continue
		}
		if err := s.do(); err != nil {
			return &stepError{"mounts", fmt.Errorf("%s: %w", s.name, err)}
		}
	}
	return nil
}
