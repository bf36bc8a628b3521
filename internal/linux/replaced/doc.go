// Package replaced notices that a name no longer leads to the file that it led to,
// or that a mount over it is gone:
//
//	w, err := replaced.Open(paths)
//	go w.Run(ctx, openMounts, func(c replaced.Change) { ... })
//	... // Run has returned
//	w.Check(...)
//	w.Close()
//
// A mount over a file keeps a program inside from changing it. When somebody on
// the host renames another file over it, or removes it, the kernel takes that mount
// away in every namespace (rename(2) since Linux 3.19); when the file itself is
// renamed, the mount goes with it. Editors, package managers and log rotation do
// such things all the time.
package replaced
