//go:build !race

package proxy

const withRace = false
