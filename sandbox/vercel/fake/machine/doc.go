// Package machine is the computer behind a session of the API's double: one run
// of the process tier with its own disk, and an agent in it that starts commands
// and handles files. The agent is this program again, so a program that uses this
// package calls [Agent] first thing in main (in tests: in TestMain). Then:
//
//	disk, err := machine.NewDisk(dir)
//	...
//	m, err := machine.Start(ctx, machine.Config{Disk: disk, DoorServer: doors})
//	...
//	defer m.Stop()
//
// Everything in one machine shares its network, processes and disk, as in a
// virtual machine. It is not one: the kernel and the programs are the host's, and
// everything in it runs as one user.
package machine
