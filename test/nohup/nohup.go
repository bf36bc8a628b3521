//go:build unix

// Package nohup is for tests that send signals to programs they start. Call Undo
// first in TestMain:
//
//	func TestMain(m *testing.M) {
//		nohup.Undo()
//		os.Exit(m.Run())
//	}
//
// A program started with a signal ignored keeps ignoring it, as nohup(1) wants,
// and so do launch and egressd. Tests run under nohup, in the background of a
// script or in some CI systems inherit such signals and pass them on; a test that
// sends one then waits for an end that never comes.
package nohup

import (
	"os"
	"os/signal"
	"syscall"
)

// Undo makes programs that this process starts begin with the default action of
// every signal that asks them to end, whatever this process inherited. This
// process itself goes on ignoring what it was started to ignore.
func Undo() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2} {
		if signal.Ignored(sig) {
			// A caught signal has its default action after an exec(2), an ignored
			// one stays ignored. Nobody reads the channel: sending does not block.
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
