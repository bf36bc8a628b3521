//go:build race

package proxy

// withRace: the race detector keeps memory of its own beside every stack.
const withRace = true
