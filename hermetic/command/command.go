// Package command is what a command of the hermetic shell is: a Go function
// over the session's own file system, streams and environment. No command
// reaches the machine by another way.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"path"
	"strings"
	"syscall"
	"time"

	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// Func runs one command and reports its exit status, 0 to 255. It returns soon
// after ctx has ended, whatever it reports then. It closes what it opened and
// leaves no goroutine.
type Func func(ctx context.Context, c *Call) int

// Table is a set of commands by name.
type Table map[string]Func

// Join makes one table of several; a name that two have is an error.
func Join(tables ...Table) (Table, error) {
	all := Table{}
	for _, t := range tables {
		for name := range t {
			if all[name] != nil {
				return nil, fmt.Errorf("two commands are called %s", name)
			}
		}
		maps.Copy(all, t)
	}
	return all, nil
}

// Call is one invocation of a command.
type Call struct {
	Args   []string // Args[0] is the name that it was called by
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Dir    string   // working directory, absolute inside
	Env    []string // exported variables, KEY=VALUE, each name once
	Umask  fs.FileMode

	*Session
}

// Session is what all calls of one run share. Safe for concurrent use.
type Session struct {
	FS     *vfs.FS
	Budget *limits.Budget
	Now    func() time.Time

	// Exec runs c.Args as a shell runs an external command: a command of the
	// table, "sh" and "bash", or a script file by its path. It writes "not found"
	// to c.Stderr and reports 126 or 127 where there is none. It does not see
	// functions and builtins of the calling shell, as in a real xargs or env.
	Exec func(ctx context.Context, c *Call) int
	// Find reports where Exec finds name, as which prints it; ok is false when
	// nowhere.
	Find func(dir, name string) (path string, ok bool)

	// Proxy opens a connection to an HTTP proxy, which judges and records where
	// to. Nil: this run has no network, and curl and wget do not exist.
	Proxy func(ctx context.Context) (net.Conn, error)
	Roots []byte // PEM certificates that curl trusts
}

// With is a copy of c that runs args with its own streams; nil streams are c's.
func (c *Call) With(args []string, stdin io.Reader, stdout, stderr io.Writer) *Call {
	d := *c
	d.Args = args
	if stdin != nil {
		d.Stdin = stdin
	}
	if stdout != nil {
		d.Stdout = stdout
	}
	if stderr != nil {
		d.Stderr = stderr
	}
	return &d
}

// Getenv reports an exported variable; "" when it is not set.
func (c *Call) Getenv(name string) string {
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// Path makes name absolute. It does not clean it: "a/.." means what the links
// on the way say, and a slash at the end asks for a directory.
func (c *Call) Path(name string) string {
	if name == "" || path.IsAbs(name) {
		return name
	}
	return strings.TrimSuffix(c.Dir, "/") + "/" + name
}

// Errorf writes "NAME: message" and a newline to the standard error.
func (c *Call) Errorf(format string, args ...any) {
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Args[0], fmt.Sprintf(format, args...))
}

// Fail is Errorf, and reports status.
func (c *Call) Fail(status int, format string, args ...any) int {
	c.Errorf(format, args...)
	return status
}

// Reason is what strerror(3) says of err: "No such file or directory".
func Reason(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "Success"
	case errors.As(err, &errno):
		s := errno.Error()
		return strings.ToUpper(s[:1]) + s[1:]
	case errors.Is(err, fs.ErrNotExist):
		return "No such file or directory"
	case errors.Is(err, fs.ErrExist):
		return "File exists"
	case errors.Is(err, fs.ErrPermission):
		return "Permission denied"
	case errors.Is(err, fs.ErrClosed):
		return "Bad file descriptor"
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
