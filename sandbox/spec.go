package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Exit codes of a run that the program did not choose itself, as in a shell.
const (
	ExitTimeout  = 124 // the time limit was met
	ExitLauncher = 125 // nothing ran
	ExitSignal   = 128 // plus the signal that ended the program
)

// defaultGrace is between SIGTERM and SIGKILL.
const defaultGrace = 5 * time.Second

// GracePeriod reports Grace, or its default.
func (s Spec) GracePeriod() time.Duration {
	if s.Grace > 0 {
		return s.Grace
	}
	return defaultGrace
}

// CommandLine reports the argv that s means: Argv, or the shell that runs Script.
func (s Spec) CommandLine() ([]string, error) {
	switch {
	case len(s.Argv) > 0 && s.Script != "":
		return nil, errors.New("a run has a command or a script, not both")
	case len(s.Argv) > 0:
		if s.Argv[0] == "" {
			return nil, errors.New("the program's name is empty")
		}
		return s.Argv, nil
	case s.Script == "":
		return nil, errors.New("nothing to run")
	}
	shell := s.Shell
	if shell == "" {
		shell = "sh"
	}
	if shell != "sh" && shell != "bash" {
		return nil, fmt.Errorf("shell %q: only sh and bash are known", shell)
	}
	return []string{shell, "-c", s.Script}, nil
}

// StandardFiles reports Stdin, Stdout and Stderr, each nil one as /dev/null. The
// caller calls closeNull when the program has ended, unless there is an error.
func (s Spec) StandardFiles() (files [3]*os.File, closeNull func(), err error) {
	var null *os.File
	files = [3]*os.File{s.Stdin, s.Stdout, s.Stderr}
	for i, f := range files {
		if f != nil {
			continue
		}
		if null == nil {
			if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return files, nil, err
			}
		}
		files[i] = null
	}
	return files, func() {
		if null != nil {
			null.Close()
		}
	}, nil
}

// WorkingDirectory reports the absolute directory that the program starts in. A
// directory that inside reports exists in the sandbox alone and is not looked for
// on this machine. Nil inside: there is none such.
func (s Spec) WorkingDirectory(inside func(path string) bool) (string, error) {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	if inside != nil && inside(dir) {
		return dir, nil
	}
	if fi, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("working directory: %w: make it first, or name another", err)
	} else if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	} else if !fi.IsDir() {
		return "", fmt.Errorf("working directory %s: not a directory", dir)
	}
	return dir, nil
}
