package netns

import (
	"runtime"

	"egressd/netns/capture"
)

// Setup prepares the calling thread's network namespace for capture. It needs
// CAP_NET_ADMIN and CAP_NET_BIND_SERVICE over that namespace, and is meant for
// a namespace that was made for this: it is called once, before anything else
// runs there. When it returns without an error the rules are in place and every
// listener listens; after an error nothing may be run in the namespace. The
// caller closes the Doors.
func Setup(c Capture) (*Doors, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l, err := capture.Link()
	if err != nil {
		return nil, err
	}
	return l.Open(c)
}
