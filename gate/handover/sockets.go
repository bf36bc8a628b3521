package handover

import (
	"errors"
	"os"

	"egressd/gate"
)

// Sockets are the doors of one sandbox as descriptors, opened in its network
// namespace.
type Sockets struct {
	Explicit, DNSTCP, DNSUDP *os.File
	Refusals                 *os.File // what the capture rules refuse (nfnetlink_log); nil: nothing
	Transparent              []*os.File
	Localhost                []LocalPort
}

// LocalPort is a listener that stands for a port of the host's loopback.
type LocalPort struct {
	Port uint16
	File *os.File
}

// layout says which file is which.
type layout struct {
	Refusals    bool     `json:"refusals,omitempty"`
	Transparent int      `json:"transparent,omitempty"`
	Localhost   []uint16 `json:"localhost,omitempty"`
}

func (s Sockets) layout() layout {
	l := layout{Refusals: s.Refusals != nil, Transparent: len(s.Transparent)}
	for _, p := range s.Localhost {
		l.Localhost = append(l.Localhost, p.Port)
	}
	return l
}

// files lists the descriptors in the order of arrange.
func (s Sockets) files() []*os.File {
	files := []*os.File{s.Explicit, s.DNSTCP, s.DNSUDP}
	if s.Refusals != nil {
		files = append(files, s.Refusals)
	}
	files = append(files, s.Transparent...)
	for _, l := range s.Localhost {
		files = append(files, l.File)
	}
	return files
}

var errLayout = errors.New("the number of sockets is not the one that was announced")

// arrange reverses layout and files.
func (l layout) arrange(files []*os.File) (Sockets, error) {
	want := 3 + l.Transparent + len(l.Localhost)
	if l.Refusals {
		want++
	}
	if l.Transparent < 0 || l.Transparent > maxDoors || len(files) != want {
		return Sockets{}, errLayout
	}
	s := Sockets{Explicit: files[0], DNSTCP: files[1], DNSUDP: files[2]}
	rest := files[3:]
	if l.Refusals {
		s.Refusals, rest = rest[0], rest[1:]
	}
	s.Transparent, rest = rest[:l.Transparent], rest[l.Transparent:]
	for i, port := range l.Localhost {
		s.Localhost = append(s.Localhost, LocalPort{port, rest[i]})
	}
	return s, nil
}

// Close closes every descriptor.
func (s Sockets) Close() error { return closeFiles(s.files()) }

// Doors opens doors on copies of the descriptors, which stay the caller's. Errors
// name the door.
func (s Sockets) Doors() (gate.Doors, error) { return s.doors() }
