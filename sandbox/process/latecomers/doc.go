// Package latecomers moves away what a program makes under a protected name that
// did not exist when its mounts were made:
//
//	g, err := latecomers.Open(latecomers.Config{Gate: gate, Plan: plan, Refused: tell})
//	go g.Run()
//	... // the program starts, and ends
//	g.Close() // what is left to be judged is judged
//
// It watches directories (inotify) from outside of the sandbox. What it finds is
// moved out of the program's reach or, on another file system, to a name that
// nobody obeys. What it cannot do is be there first: between the making and the
// moving are a few hundred microseconds, milliseconds on a busy machine.
package latecomers
