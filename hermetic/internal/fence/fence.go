// Package fence holds the tests that keep the packages of this module apart: what
// each may import, how long things may get, and that README.md lists what there is.
// Each rule and each exception has its reason beside it; an exception that is no
// longer needed fails.
package fence
