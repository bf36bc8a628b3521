// Package conform compares the shell and its commands with recorded bash.
//
//	go test ./hermetic/internal/shell/conform
//
// It has tests and no code. Each case in testdata is a command with the output
// and the exit status that bash 5.2.15 and the GNU tools gave for it.
package conform
