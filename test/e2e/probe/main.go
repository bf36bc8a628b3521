// Probe is the attacker of the end-to-end tests: it runs inside the sandbox,
// reads a list of attempts from stdin, tries each, and prints how it went. The
// same list run outside reaches the canaries, which shows that each attempt
// can succeed.
package main

import (
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
