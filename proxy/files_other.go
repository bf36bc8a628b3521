//go:build !unix

package proxy

// connectionsForFiles reports how many connections a limit on open files leaves
// room for. 0: there is no such limit.
func connectionsForFiles() int { return 0 }
