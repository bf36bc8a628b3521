package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"egressd/sandbox"
)

// commandLine reports the argv that spec means.
func commandLine(spec sandbox.Spec) ([]string, error) {
	switch {
	case len(spec.Argv) > 0 && spec.Script != "":
		return nil, errors.New("a run has a command or a script, not both")
	case len(spec.Argv) > 0:
		if spec.Argv[0] == "" {
			return nil, errors.New("the program's name is empty")
		}
		return spec.Argv, nil
	case spec.Script == "":
		return nil, errors.New("nothing to run")
	}
	shell := spec.Shell
	if shell == "" {
		shell = "sh"
	}
	if shell != "sh" && shell != "bash" {
		return nil, fmt.Errorf("shell %q: only sh and bash are known", shell)
	}
	return []string{shell, "-c", spec.Script}, nil
}

// standardFiles reports spec's stdin, stdout and stderr, with /dev/null where
// there is none.
func standardFiles(spec sandbox.Spec) (files [3]*os.File, closeNull func(), err error) {
	var null *os.File
	files = [3]*os.File{spec.Stdin, spec.Stdout, spec.Stderr}
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

// workingDirectory reports the absolute directory that the harness starts in.
// Whether one that inside reports is there only the inside can tell; nil: none.
func workingDirectory(spec sandbox.Spec, inside func(path string) bool) (string, error) {
	dir, err := filepath.Abs(spec.Dir)
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	if inside != nil && inside(dir) {
		return dir, nil
	}
	if fi, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	} else if !fi.IsDir() {
		return "", fmt.Errorf("working directory %s: not a directory", dir)
	}
	return dir, nil
}
