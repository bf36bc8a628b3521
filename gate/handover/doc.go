// Package handover lets a launcher hand the doors of its sandbox to a running
// egressd, over a unix socket, and get the events of its run back. [Server] is
// the daemon's half, [Dial] the launcher's.
//
//	launch                                          egressd
//	  hello: version, policy documents, secrets ──►   compile, narrow by the ceiling
//	  ready: the CA to trust, the digest        ◄──   (or refused: why)
//	  doors: the sockets (SCM_RIGHTS)           ──►   serve them
//	  serving                                   ◄──
//	  event ◄── ack ──► event ◄── ack ──► ...
//	  (closes its half, or dies)                ──►   close doors and flows
//	  end                                       ◄──   the last event was sent
//
// A frame is a length of four bytes (big endian), a byte that says its kind, and
// so many bytes, JSON for the most part.
//
// The launcher keeps no copy of a socket that it handed over. When the daemon
// goes, the sandbox has no way out; when the launcher goes, the daemon closes
// what it was given.
//
// An allowed flow is on record in both places before a byte of it passes: the
// daemon waits until the launcher has said that it recorded the event. A
// launcher that does not read (it is stopped, or its events go into a pipe that
// nobody empties) costs its own flows [AckTimeout] and their permission, and
// nobody else anything; events that no longer find room are counted, and the
// count is told at the end.
package handover

import "time"

// Protocol is the version of the conversation. It changes with every change of
// a frame or of what is in one; both sides must have the same.
const Protocol = 1

// Implementation constants.
const (
	// AckTimeout is how long an allowed flow waits for the launcher to record it.
	AckTimeout = 5 * time.Second

	helloTimeout = 10 * time.Second // from the connection to the whole hello
	replyTimeout = 30 * time.Second // for the daemon to compile a long policy
	setUpTimeout = 45 * time.Second // from ready to the doors: the launcher builds its walls meanwhile
	endTimeout   = 5 * time.Second  // for the last events to be sent, and read

	maxFrame     = 64 << 10 // from a launcher, once the session stands
	maxReply     = 16 << 20 // from the daemon: an event with a long path, mostly
	maxQueue     = 1 << 20  // bytes of events that wait to be sent
	maxQuestions = 64       // that a launcher is asked at once
	maxDoors     = 250      // sockets in one hand-over; the kernel's bound is 253
)
