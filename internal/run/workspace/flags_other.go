//go:build !unix

package workspace

// nonBlocking is nothing where there are no FIFOs in directories.
const nonBlocking = 0
