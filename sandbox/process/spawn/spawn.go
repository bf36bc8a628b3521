// Package spawn starts the init of a sandbox in namespaces of its own, and
// outlives it. It imports next to nothing, so that a launcher can start its
// init while the rest of it is still being initialised.
package spawn

// Name is argv[0] of the init, by which a process knows that it is one.
const Name = "launch-init"

// What the init is told in the one byte that it reads first, when its ids are
// mapped: before that it has no rights over its namespaces.
const (
	Wait  byte = 1 // build nothing before the configuration is there
	Begin byte = 2 // build what every run needs at once
)
