//go:build unix

package handover

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// sendFiles writes b with files on its first byte. The files stay the caller's.
func (l *link) sendFiles(b []byte, files []*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	n, _, err := l.c.WriteMsgUnix(b, unix.UnixRights(fds...), nil)
	if err == nil && n < len(b) {
		_, err = l.c.Write(b[n:])
	}
	return err
}

// receiveFiles reads one frame and the files on its first byte. The caller
// closes them.
//
// Threat: a launcher sends descriptors with other frames, to use up those of the
// daemon -> they are received here alone; elsewhere the kernel closes them. Left
// over: as many as one frame may hold, until they are closed.
func (l *link) receiveFiles(most int) (k kind, body []byte, files []*os.File, err error) {
	var head [headBytes]byte
	oob := make([]byte, unix.CmsgSpace(4*maxDoors))
	n, oobn, flags, _, err := l.c.ReadMsgUnix(head[:], oob)
	if err != nil {
		return 0, nil, nil, err
	}
	if n == 0 {
		return 0, nil, nil, io.EOF
	}
	files, err = parseRights(oob[:oobn])
	if err == nil && flags&unix.MSG_CTRUNC != 0 {
		err = fmt.Errorf("more than %d sockets at once, or no descriptors left here", maxDoors)
	}
	if err == nil {
		_, err = io.ReadFull(l.c, head[n:])
	}
	if err == nil {
		k, body, err = l.body(head, most)
	}
	if err != nil {
		closeFiles(files)
		return 0, nil, nil, err
	}
	return k, body, files, nil
}

func parseRights(oob []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("descriptors: %w", err)
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			closeFiles(files)
			return nil, fmt.Errorf("descriptors: %w", err)
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "handed over"))
		}
	}
	return files, nil
}

func closeFiles(files []*os.File) error {
	var errs []error
	for _, f := range files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
