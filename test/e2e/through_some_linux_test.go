//go:build !system

package e2e

// throughTables is one table, the verdicts, so that the first storey stays short.
const throughTables = "^TestVerdicts$"
