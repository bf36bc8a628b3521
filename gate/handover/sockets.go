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

// shape says which file is which.
type shape struct {
	Refusals    bool     `json:"refusals,omitempty"`
	Transparent int      `json:"transparent,omitempty"`
	Localhost   []uint16 `json:"localhost,omitempty"`
}

func (s Sockets) shape() shape {
	sh := shape{Refusals: s.Refusals != nil, Transparent: len(s.Transparent)}
	for _, l := range s.Localhost {
		sh.Localhost = append(sh.Localhost, l.Port)
	}
	return sh
}

// files lists the descriptors in the order that arrange takes them.
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

var errShape = errors.New("the number of sockets is not the one that was announced")

// arrange is the reverse of shape and files.
func arrange(sh shape, files []*os.File) (Sockets, error) {
	want := 3 + sh.Transparent + len(sh.Localhost)
	if sh.Refusals {
		want++
	}
	if sh.Transparent < 0 || sh.Transparent > maxDoors || len(files) != want {
		return Sockets{}, errShape
	}
	s := Sockets{Explicit: files[0], DNSTCP: files[1], DNSUDP: files[2]}
	rest := files[3:]
	if sh.Refusals {
		s.Refusals, rest = rest[0], rest[1:]
	}
	s.Transparent, rest = rest[:sh.Transparent], rest[sh.Transparent:]
	for i, port := range sh.Localhost {
		s.Localhost = append(s.Localhost, LocalPort{port, rest[i]})
	}
	return s, nil
}

// Close closes every descriptor.
func (s Sockets) Close() error { return closeFiles(s.files()) }

// Doors makes doors of the descriptors, which stay the caller's. Errors name
// the door.
func (s Sockets) Doors() (gate.Doors, error) { return s.doors() }
