// Package stdfiles looks at the standard files that a confined program is to be
// given.
package stdfiles
