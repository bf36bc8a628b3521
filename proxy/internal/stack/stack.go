// Package stack makes room on a goroutine's stack in one step:
//
//	go func() {
//		stack.Grow()
//		... // many calls deep
//	}()
//
// A goroutine begins with 2 KiB. The runtime gets to what a door needs by doubling,
// and copies what is on the stack each time: a twentieth of a set-up's processor
// time (bench/load, connect).
package stack

const bytes = 12 << 10 // makes a stack of 16 KiB

// Grow gives the calling goroutine room for what a door or the end of a flow calls.
// It pays while next to nothing is on the stack.
//
//go:noinline
func Grow() {
	var room [bytes]byte
	use(&room)
}

//go:noinline
func use(*[bytes]byte) {}
