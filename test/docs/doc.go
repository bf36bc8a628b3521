// Package docs holds the test that reads what people are told: every fenced
// block of README.md and docs/*.md is run or checked, in order, a page at a
// time, in a network, mount and process namespace made for that page, with a
// DNS server and TLS origins for every name.
//
//	sh      commands, run one by one in one shell; each must exit 0, or with N where its line says "# exits N"
//	text    what the commands before it print: "..." stands for anything, a line of "..." for any lines
//	yaml    a policy, a manifest, a Compose file, a workflow or values: checked as what it is
//	json    events, checked against the schema
//	ini     a unit or a configuration file
//
// A yaml, ini or json block whose first line is a comment with a file name is
// saved under that name, so that later commands may use it. What a machine of
// ours cannot do carries a comment above it, <!-- not run: reason -->, and is
// counted. Any other language is an error.
//
// That test has the build tag system: it needs curl, podman and what else the
// pages use. The reference tables (events, metrics, flags, reasons, limits) are
// compared with the program, both ways, without the tag.
package docs
