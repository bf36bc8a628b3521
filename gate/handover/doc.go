// Package handover passes the doors of a sandbox to a running egressd, over a
// unix socket, and its events back. The daemon serves launchers:
//
//	ln, err := handover.Listen(ctx, path)
//	s := &handover.Server{Ceiling: policy, Events: record}
//	err = s.Serve(ctx, ln)
//
// The launcher hands its doors over:
//
//	c, err := handover.Dial(ctx, path, handover.Offer{Session: id, Documents: docs, Events: events})
//	err = c.Open(ctx, &wg, sockets)
//	wg.Wait() // the last event has arrived
//	err = c.Close()
//
// A session is what events call the run whose doors were handed over.
//
//	launch                                          egressd
//	  hello: version, policy documents, secrets ──►   compile, narrow by the ceiling
//	  ready: the CA to trust, the digest        ◄──   (or refused, and why)
//	  doors: the sockets (SCM_RIGHTS)           ──►   serve them
//	  serving                                   ◄──
//	  event ◄── ack ──► event ◄── ack ──► ...
//	  (closes its half, or dies)                ──►   close doors and flows
//	  end                                       ◄──   the last event was sent
//
// A frame is a length of four bytes (big endian), one byte for its kind, and as
// many bytes as the length says, most of them JSON.
//
// The launcher keeps no copy of a socket that it handed over. When the daemon
// ends, the sandbox has no way out; when the launcher ends, the daemon closes what
// it received.
//
// An allowed flow is on record in both places before a byte of it passes: the
// daemon waits for the launcher to confirm the event. A launcher that does not
// read (it is stopped, or its events go into a pipe that nobody empties) delays
// its own flows by [AckTimeout] and has them denied; nobody else is affected.
// Events that find no room are counted, and the end frame carries the count.
package handover

import "time"

// Protocol is the version of the protocol. It changes with every change of a frame
// or its contents; both sides must have the same.
const Protocol = 5

// Implementation constants.
const (
	// AckTimeout is how long an allowed flow waits for the launcher to record it.
	AckTimeout = 5 * time.Second

	helloTimeout = 10 * time.Second // from the connection to the whole hello
	replyTimeout = 30 * time.Second // for the daemon to compile a long policy
	setUpTimeout = 45 * time.Second // from ready to the doors: the launcher sets the sandbox up meanwhile
	endTimeout   = 5 * time.Second  // for the last events to be sent, and read

	maxFrame     = 64 << 10 // from a launcher, after its hello
	maxReply     = 16 << 20 // from the daemon: an event with a long path, mostly
	maxQueue     = 1 << 20  // bytes of events that wait to be sent
	maxQuestions = 64       // that a launcher is asked at once
	maxDoors     = 250      // sockets in one handover; the kernel's bound is 253
)
