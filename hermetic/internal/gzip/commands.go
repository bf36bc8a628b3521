// Package gzip is gzip, gunzip and zcat.
package gzip

import (
	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"gzip": gnu.Tool(gzipCommand), "gunzip": gnu.Tool(gzipCommand), "zcat": gnu.Tool(gzipCommand)}
}
