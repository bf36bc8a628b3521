//go:build system

package e2e

// throughTables is every table that says what a run may do and how it ends.
const throughTables = "^(TestVerdicts|TestDNS|TestFraming|TestRebinding|TestClients|TestExitCodes|TestKillAll|TestLauncherDies|TestLogInjection)$"
