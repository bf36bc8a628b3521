// Release builds what a release of egressd consists of: for each architecture one
// archive with both binaries, their bills of materials, manual pages, completions and what a machine
// needs besides; packages; recipes for Homebrew, Arch Linux and Nix; and the SHA-256 of each file. Two builds
// of one commit are equal, byte for byte.
//
//	go run ./deploy/release --version v1.2.3 --out dist --packages
//
// It signs and publishes nothing: docs/install.md says how that is done.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	var r release
	var arches string
	flag.StringVar(&r.version, "version", "", "the `VERSION`, such as v1.2.3")
	flag.StringVar(&r.out, "out", "dist", "the new `DIR` for the archives")
	flag.BoolVar(&r.packaged, "packages", false, "a deb, an rpm and an apk besides, with a tool from the Go module proxy")
	flag.StringVar(&r.nfpm, "nfpm", "", "make packages with this `PROGRAM`, not with one that is built first")
	flag.StringVar(&arches, "arch", "amd64,arm64", "for these `ARCHITECTURES` of Linux")
	flag.Parse()
	r.arches = strings.Split(arches, ",")
	if err := r.make(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what is to be built, and from what.
type release struct {
	version string
	out     string
	arches  []string
	commit  string
	// packaged: for package managers, too.
	packaged bool
	nfpm     string    // a program; "": build it
	time     time.Time // of the commit: that of every file
}

// entry is one file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

var validVersion = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// programs are the binaries of a release.
var programs = []string{"launch", "egressd"}

// shipped are the files of the tree in every archive.
var shipped = []string{
	"LICENSE", "README.md", "deploy/apparmor/egressd-launch", "deploy/systemd/egressd.service", "deploy/systemd/egressd.socket",
	"deploy/systemd/egressd-admin.socket", "deploy/systemd/egressd-control.socket",
}

func (r *release) make() error {
	if !validVersion.MatchString(r.version) {
		return fmt.Errorf("--version %q: write v1.2.3, or v1.2.3-rc.1", r.version)
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return fmt.Errorf("--out: %w (it must be new)", err)
	}
	if err := r.source(); err != nil {
		return err
	}
	texts, err := r.texts()
	if err != nil {
		return err
	}
	sums := map[string][32]byte{}
	for _, arch := range slices.Sorted(slices.Values(r.arches)) {
		entries := slices.Clone(texts)
		for _, program := range programs {
			data, err := r.build(program, arch)
			if err != nil {
				return err
			}
			list, err := materials(program, r.version, r.time, data)
			if err != nil {
				return err
			}
			entries = append(entries, entry{program, 0o755, data}, entry{"sbom/" + program + ".cdx.json", 0o644, list})
		}
		archive, err := pack(entries, r.time)
		if err != nil {
			return err
		}
		sums[arch] = sha256.Sum256(archive)
		if err := os.WriteFile(filepath.Join(r.out, archiveName(r.version, arch)), archive, 0o644); err != nil {
			return err
		}
		if r.packaged {
			if err := r.packages(arch, entries); err != nil {
				return err
			}
		}
	}
	if len(sums) == 2 { // what recipes need
		files, err := recipes(r.version, sums)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(r.out, f.name), f.data, 0o644); err != nil {
				return err
			}
		}
	}
	return sumUp(r.out)
}

func archiveName(version, arch string) string {
	return fmt.Sprintf("egressd_%s_linux_%s.tar.gz", strings.TrimPrefix(version, "v"), arch)
}

// sumUp writes SHA256SUMS, with a line for each file of dir.
func sumUp(dir string) error {
	files, err := os.ReadDir(dir) // by name
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), f.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), sums.Bytes(), 0o644)
}

// source reads the commit that is built. What is not committed is not released.
func (r *release) source() error {
	if out, err := output("git", "status", "--porcelain"); err != nil || out != "" {
		return errors.Join(errors.New("the tree holds changes that are not committed: a release is built from a commit"), err)
	}
	out, err := output("git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(out, " ")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("the time of the commit: %w", err)
	}
	r.commit, r.time = commit, time.Unix(n, 0).UTC()
	return nil
}

// build reports the static binary of a program.
func (r *release) build(program, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "egressd-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	const pkg = "-X egressd/internal/cli."
	flags := "-s -w -buildid= " + pkg + "version=" + r.version + " " + pkg + "commit=" + r.commit + " " + pkg + "date=" + r.time.Format(time.RFC3339)
	file := filepath.Join(dir, program)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, "./cmd/"+program)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s for %s: %w", program, arch, err)
	}
	return os.ReadFile(file)
}

// texts are the files that are the same for every architecture.
func (r *release) texts() ([]entry, error) {
	var all []entry
	for _, name := range shipped {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, entry{strings.TrimPrefix(name, "deploy/"), 0o644, data})
	}
	for _, program := range programs {
		data, err := r.build(program, runtime.GOARCH)
		if err != nil {
			return nil, err
		}
		made, err := generated(program, data)
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	return all, nil
}

// generated runs a program for what it says about its own flags.
func generated(program string, binary []byte) ([]entry, error) {
	dir, err := os.MkdirTemp("", "egressd-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, program)
	if err := os.WriteFile(file, binary, 0o755); err != nil {
		return nil, err
	}
	var all []entry
	for kind, name := range map[string]string{
		"man": "man/" + program + ".1", "bash": "completions/" + program + ".bash",
		"zsh": "completions/_" + program, "fish": "completions/" + program + ".fish",
	} {
		out, err := exec.Command(file, "completion", kind).Output()
		if err != nil {
			return nil, fmt.Errorf("%s completion %s: %w", program, kind, err)
		}
		all = append(all, entry{name, 0o644, out})
	}
	return all, nil
}

// pack makes an archive that depends on its entries and the time alone.
func pack(entries []entry, at time.Time) ([]byte, error) {
	entries = slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	var out bytes.Buffer
	gz, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(gz)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	return strings.TrimSpace(string(out)), err
}
