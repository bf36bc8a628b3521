package stream

import (
	"io/fs"
	"time"
)

// pipeInfo is what fstat reports for a pipe.
type pipeInfo struct{}

func (pipeInfo) Name() string       { return "pipe" }
func (pipeInfo) Size() int64        { return 0 }
func (pipeInfo) Mode() fs.FileMode  { return fs.ModeNamedPipe | 0o600 }
func (pipeInfo) ModTime() time.Time { return time.Unix(0, 0) }
func (pipeInfo) IsDir() bool        { return false }

// Sys is nil: vfs.Sys uses the mode.
func (pipeInfo) Sys() any { return nil }

// nullInfo is what fstat reports for /dev/null, an input that is not there.
type nullInfo struct{ pipeInfo }

func (nullInfo) Name() string      { return "null" }
func (nullInfo) Mode() fs.FileMode { return fs.ModeDevice | fs.ModeCharDevice | 0o666 }

// outerInfo is what a script can learn about a file of the host that is one of
// its standard streams: kind, size, mode and time.
//
// Threat: a script reads names, owners and inode numbers of host files off its
// standard streams -> they are not passed on -> nothing is left over.
type outerInfo struct {
	pipeInfo
	mode fs.FileMode
	size int64
	time time.Time
}

func (o outerInfo) Name() string       { return "stream" }
func (o outerInfo) Mode() fs.FileMode  { return o.mode }
func (o outerInfo) Size() int64        { return o.size }
func (o outerInfo) ModTime() time.Time { return o.time }

func outerStat(info fs.FileInfo, err error) (fs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return outerInfo{mode: info.Mode(), size: info.Size(), time: info.ModTime()}, nil
}
