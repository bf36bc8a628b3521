// Package inside is what runs as pid 1 of a sandbox. It has no API: a process that
// package spawn starts never gets as far as main, but
//
//   - captures its network and hands the doors' sockets to the supervisor,
//   - hides the host's file system, processes and devices,
//   - drops every privilege and loads the system-call filter,
//   - starts the program, and reports its end.
//
// Package control holds what it and the supervisor say to each other.
package inside
