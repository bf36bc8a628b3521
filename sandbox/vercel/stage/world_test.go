package stage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// paths is a tree in words: "-rw content", "-> target", "dir".
type paths map[string]string

// make writes a tree.
func (w paths) make(t *testing.T, dir string) {
	t.Helper()
	for _, name := range sorted(w) {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		kind, rest, _ := strings.Cut(w[name], " ")
		switch kind {
		case "dir":
			must(t, os.MkdirAll(path, 0o755))
		case "->":
			must(t, os.Symlink(rest, path))
		default:
			var mode fs.FileMode
			_, err := fmt.Sscanf(kind, "%o", &mode)
			must(t, err)
			must(t, os.WriteFile(path, []byte(rest), 0o600))
			must(t, os.Chmod(path, mode))
		}
	}
}

func sorted(w paths) []string {
	names := make([]string, 0, len(w))
	for name := range w {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// look reads a tree back. Directories with something in them are left out.
func look(t *testing.T, dir string) paths {
	t.Helper()
	w := paths{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := d.Info()
		must(t, err)
		switch {
		case d.IsDir():
			if list, err := os.ReadDir(path); err == nil && len(list) == 0 {
				w[name] = "dir"
			}
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			must(t, err)
			w[name] = "-> " + link
		default:
			data, err := os.ReadFile(path)
			must(t, err)
			w[name] = fmt.Sprintf("%o %s", info.Mode().Perm(), data)
		}
		return nil
	}))
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// send scans dir and sends it into a new directory, as the other side has it.
func send(t *testing.T, c Config) (*Tree, string) {
	t.Helper()
	tree, err := Scan(context.Background(), c)
	must(t, err)
	t.Cleanup(func() { tree.Close() })
	there := t.TempDir()
	for _, e := range tree.Entries() {
		path := filepath.Join(there, e.Path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case e.Mode.IsDir():
			must(t, os.MkdirAll(path, 0o755))
		case e.Mode&fs.ModeSymlink != 0:
			must(t, os.Symlink(e.Link, path))
		default:
			r, err := tree.Open(e.Path)
			must(t, err)
			data, err := io.ReadAll(r)
			must(t, err)
			must(t, r.Close())
			must(t, os.WriteFile(path, data, 0o600))
			must(t, os.Chmod(path, e.Mode.Perm()))
		}
	}
	return tree, there
}

// pack is what "tar -czf - ." makes of dir, and extra after it.
func pack(t *testing.T, dir string, extra ...*tar.Header) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if dir != "" {
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			must(t, err)
			info, err := d.Info()
			must(t, err)
			link := ""
			if info.Mode()&fs.ModeSymlink != 0 {
				link, err = os.Readlink(path)
				must(t, err)
			}
			h, err := tar.FileInfoHeader(info, link)
			must(t, err)
			rel, _ := filepath.Rel(dir, path)
			h.Name = "./" + rel
			must(t, w.WriteHeader(h))
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(path)
				must(t, err)
				_, err = w.Write(data)
				must(t, err)
			}
			return nil
		}))
	}
	for _, h := range extra {
		body := h.PAXRecords["body"]
		h.PAXRecords = nil
		h.Size = int64(len(body))
		must(t, w.WriteHeader(h))
		_, err := io.WriteString(w, body)
		must(t, err)
	}
	must(t, w.Close())
	must(t, z.Close())
	return bytes.NewReader(b.Bytes())
}

// file is an entry of an archive.
func file(name, body string) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, PAXRecords: map[string]string{"body": body}}
}
