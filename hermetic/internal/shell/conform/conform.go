// Package conform holds the tests that compare the hermetic shell and its
// commands with recorded bash: it has no code of its own.
package conform
