// Package machine is the computer behind a session of the API's double: one run
// of the process tier with a disk of its own, and an agent in it that starts
// commands and handles files as it is told.
//
// The agent is this program again. A program that uses this package calls
// [Agent] first thing in main (in tests: in TestMain).
//
// Everything of one machine shares its network, processes and disk, as in a
// virtual machine. It is none: the kernel and the programs are the host's, and
// everybody in it is one user.
package machine
