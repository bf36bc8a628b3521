//go:build !race

package hermetic

const raceEnabled = false
