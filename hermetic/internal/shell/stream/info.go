package stream

import (
	"io/fs"
	"time"
)

// pipeInfo is what fstat says of a pipe.
type pipeInfo struct{}

func (pipeInfo) Name() string       { return "pipe" }
func (pipeInfo) Size() int64        { return 0 }
func (pipeInfo) Mode() fs.FileMode  { return fs.ModeNamedPipe | 0o600 }
func (pipeInfo) ModTime() time.Time { return time.Unix(0, 0) }
func (pipeInfo) IsDir() bool        { return false }

// Sys is nothing: vfs.Sys makes something of the mode.
func (pipeInfo) Sys() any { return nil }

// nullInfo is that of an input that is not there: /dev/null.
type nullInfo struct{ pipeInfo }

func (nullInfo) Name() string      { return "null" }
func (nullInfo) Mode() fs.FileMode { return fs.ModeDevice | fs.ModeCharDevice | 0o666 }

// outerInfo is what a script may know of a file of the host that it got as a
// standard stream: its kind, size, mode and time.
//
// Threat: names, owners and numbers of files of the host are read off the
// standard streams -> they are not handed on. Nothing is left over.
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
