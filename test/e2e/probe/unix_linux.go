package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

func containsMarker(b []byte) bool { return bytes.Contains(b, []byte(job.Marker)) }

// unixStream connects to the socket at Via and talks to it.
func unixStream(j job.Job) job.Result { return unixTalk("unix", j) }

// unixAbstract is unixStream in the namespace without paths.
func unixAbstract(j job.Job) job.Result {
	j.Via = "@" + j.Via
	return unixTalk("unix", j)
}

func unixTalk(network string, j job.Job) job.Result {
	c, err := net.DialTimeout(network, j.Via, stepTimeout)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(stepTimeout)); err != nil {
		return fail(err)
	}
	if _, err := c.Write([]byte(j.Token)); err != nil {
		return fail(err)
	}
	return readMarker(c)
}

// unixDgram sends without connecting: some filters look only at connect.
func unixDgram(j job.Job) job.Result {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	return outcome(unix.Sendto(fd, []byte(j.Token), 0, &unix.SockaddrUnix{Name: j.Via}), "sent")
}

// unixFind looks for any socket below Via that accepts a connection, wherever
// it may have been moved to.
func unixFind(j job.Job) job.Result {
	var found []string
	deadline := time.Now().Add(5 * time.Second)
	errStop := errors.New("stop")
	err := filepath.WalkDir(j.Via, func(p string, d fs.DirEntry, err error) error {
		if time.Now().After(deadline) {
			return errStop
		}
		if err != nil || d.Type()&fs.ModeSocket == 0 {
			return nil //nolint:nilerr // what cannot be read cannot be connected to either
		}
		c, err := net.DialTimeout("unix", p, time.Second)
		if err != nil {
			return nil //nolint:nilerr // the next one
		}
		found = append(found, p)
		return c.Close()
	})
	r := job.Result{Status: -1, Done: len(found) > 0, Answers: found}
	if err != nil && !errors.Is(err, errStop) {
		r.Err = fmt.Sprint(err)
	}
	return r
}
