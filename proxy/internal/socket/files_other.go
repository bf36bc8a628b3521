//go:build !unix

package socket

// MaxConnections reports how many connections a limit on open files leaves
// room for. 0: there is no such limit.
func MaxConnections() int { return 0 }
