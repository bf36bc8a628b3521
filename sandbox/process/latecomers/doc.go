// Package latecomers moves away what a program makes under a protected name that
// did not exist when its mounts were made:
//
//	g := latecomers.New(latecomers.Config{Gate: gate, Plan: plan, Refused: tell})
//	go g.Run()
//	... // the program starts, and ends
//	g.Close() // what is left to be judged is judged
//
// It watches directories from outside of the sandbox. What it finds is moved out
// of the program's reach or, on another file system, to a name that nobody obeys.
//
// In the first second it looks every 20 ms whether a directory was changed: to end
// an inotify instance takes the kernel 8 ms, which a short run need not pay. After
// that the kernel tells it.
//
// What it cannot do is be there first: the name stands for up to 20 ms in the
// first second, then for some hundred microseconds, longer on a busy machine.
package latecomers
