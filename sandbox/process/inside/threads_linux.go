package inside

import (
	"runtime"
	"sync"
)

// threadsNeeded is what an init with a program needs at a time: one waits for
// processes, one for orders, one is the Go runtime's watch, and one takes over
// from those that wait; those that answer for system calls, and
// the one that watches covers.
const threadsNeeded = 4 + handlers + 1

// makeThreads makes the threads that are still missing. Mostly none is: setting
// up took as many.
//
// Threat: a fork bomb takes every process number inside, the Go runtime wants
// one more thread for pid 1, gets none and ends it: what the program was doing
// ends as if killed -> the threads are there before the program is. Left over:
// connections to published ports, each of which may want one more.
func makeThreads() {
	if n, _ := runtime.ThreadCreateProfile(nil); n >= threadsNeeded {
		return
	}
	var held sync.WaitGroup
	release := make(chan struct{})
	const there = 2 // this one, and the runtime's watch, which holds no goroutine
	for range threadsNeeded - there {
		held.Add(1)
		go hold(&held, release)
	}
	held.Wait()
	close(release)
}

// hold keeps a thread to itself until release is closed.
func hold(held *sync.WaitGroup, release <-chan struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	held.Done()
	<-release
}
