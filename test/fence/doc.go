// Package fence holds the tests that keep the rooms apart: which room may
// import which, which calls belong to one place only, and how long things may
// get. Each rule carries its reason; a rule about something that no longer
// exists fails too, so that the list cannot rot.
package fence
