// Package stdfiles checks the standard files that a confined program is given:
//
//	err := stdfiles.Check([3]*os.File{os.Stdin, os.Stdout, os.Stderr}, protected)
package stdfiles
