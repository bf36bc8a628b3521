//go:build race

package hermetic

const raceEnabled = true
