package inside

import (
	"fmt"
	"os"

	"egressd/internal/linux/ipc"
	"egressd/netns/capture"
	"egressd/sandbox/process/control"
)

// openDoors captures the network namespace, in which every thread of the init
// is, and opens the gate's sockets in it.
func (b *builder) openDoors(c capture.Config) (err error) {
	if b.links == nil {
		if b.links, err = capture.Link(); err != nil {
			return err
		}
	}
	b.doors, err = b.links.Open(c)
	return err
}

// sendDoors hands the sockets over.
func (b *builder) sendDoors() error {
	d := b.doors
	defer d.Close() //nolint:errcheck // copies; the supervisor has its own
	r := control.DoorsReady{Mode: string(d.Mode), ProxyPort: d.ProxyPort, Transparent: len(d.Transparent), Refusals: d.Refusals != nil, Notes: d.Notes}
	files := []*os.File{d.Proxy, d.DNSTCP, d.DNSUDP}
	if d.Refusals != nil {
		files = append(files, d.Refusals)
	}
	files = append(files, d.Transparent...)
	for _, port := range b.cfg.Localhost {
		ls, err := listenLocalhost(port)
		if err != nil {
			return err
		}
		defer ipc.CloseAll(ls)
		for range ls {
			r.Localhost = append(r.Localhost, port)
		}
		files = append(files, ls...)
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return b.ctl.Send(control.Message{Doors: &r}, fds...)
}

func listenLocalhost(port uint16) ([]*os.File, error) {
	ls, err := capture.ListenLoopback(port)
	if err != nil {
		return nil, fmt.Errorf("localhost:%d inside: %w", port, err)
	}
	return ls, nil
}
