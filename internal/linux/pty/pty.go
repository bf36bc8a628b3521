// Package pty makes pseudo-terminals:
//
//	master, slave, err := pty.Open()
//	err = pty.SetSize(master, pty.Size{Cols: 80, Rows: 24})
//	... start a program with slave as its controlling terminal ...
//
// On other systems than Linux every function fails.
package pty

// Size is that of a terminal, in characters. Zero is unknown.
type Size struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}
