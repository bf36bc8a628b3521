//go:build system

package docs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// imageStore holds the images that pages name, for every world to read.
type imageStore struct {
	once sync.Once
	err  error
}

// sharedImages are built by the first page that needs them.
var sharedImages imageStore

func (*imageStore) dir() string {
	if *env.images != "" {
		return *env.images
	}
	return filepath.Join(env.base, "images")
}

// standIns are images of others that pages name. Each is a shell and a few
// programs of this machine.
var standIns = []string{"docker.io/curlimages/curl:latest", "docker.io/library/python:3-slim", "docker.io/library/golang:1.26", "localhost/my/agent:latest"}

// inStandIn are the programs in them.
var inStandIn = []string{
	"sh", "bash", "cat", "cp", "chmod", "chown", "curl", "date", "env", "false", "grep", "head", "id", "ls", "mkdir", "python3", "rm", "sed",
	"sleep", "tail", "test", "touch", "true", "wc",
}

// compose is the real Docker Compose, built beside the images.
func (*imageStore) compose() string { return filepath.Join(env.base, "tools", "docker-compose") }

// need builds the images, once.
func (s *imageStore) need(t *testing.T) {
	t.Helper()
	s.once.Do(func() { s.err = s.build() })
	if s.err != nil {
		t.Fatal(s.err)
	}
}

func (s *imageStore) build() error {
	if err := env.build(); err != nil {
		return err
	}
	if err := buildTools(); err != nil {
		return err
	}
	if *env.images != "" {
		return nil
	}
	if err := os.MkdirAll(s.dir(), 0o755); err != nil {
		return err
	}
	conf := filepath.Join(env.base, "images-storage.conf")
	text := fmt.Sprintf("[storage]\ndriver=\"overlay\"\ngraphroot=%q\nrunroot=%q\n", s.dir(), filepath.Join(env.base, "images-run"))
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return err
	}
	run := func(stdin []byte, argv ...string) error {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "CONTAINERS_STORAGE_CONF="+conf, "BUILDAH_ISOLATION=chroot")
		cmd.Stdin = bytes.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", argv, err, tail(string(out)))
		}
		return nil
	}
	archive, err := standInRoot().archive()
	if err != nil {
		return err
	}
	args := []string{"podman", "import", "-q"}
	for _, v := range []string{
		"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "GOMODCACHE=/modules", "GOCACHE=/cache", "GOPROXY=off", "GOTOOLCHAIN=local",
	} {
		args = append(args, "-c", "ENV "+v)
	}
	if err := run(archive, append(args, "-", standIns[0])...); err != nil {
		return err
	}
	for _, name := range standIns[1:] {
		if err := run(nil, "podman", "tag", standIns[0], name); err != nil {
			return err
		}
	}
	checkout, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if err := run(nil, append(buildArgs(), "-t", "localhost/egressd:local", checkout)...); err != nil {
		return err
	}
	return run(nil, "podman", "tag", "localhost/egressd:local", "docker.io/library/egressd:local", "docker.io/library/egressd:"+chartVersion(), "docker.io/library/egressd:latest")
}

// buildTools builds the real Docker Compose, Helm and kubeconform.
func buildTools() error {
	tools := filepath.Join(env.base, "tools")
	if err := os.MkdirAll(tools, 0o755); err != nil {
		return err
	}
	for _, tool := range []struct{ name, module, tool, workspace string }{
		{"docker-compose", "compose", "cmd", "GOWORK=off"}, // in a workspace its requirements are ambiguous
		{"helm", filepath.Join(root, "deploy/validate"), "helm", "GOWORK="},
		{"kubeconform", filepath.Join(root, "deploy/validate"), "kubeconform", "GOWORK="},
	} {
		cmd := exec.Command("go", "tool", "-n", tool.tool) // Go's cache keeps what it links
		cmd.Dir = tool.module
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", tool.workspace)
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("build %s: %w", tool.name, err)
		}
		if err := os.Symlink(strings.TrimSpace(string(out)), filepath.Join(tools, tool.name)); err != nil {
			return err
		}
	}
	return nil
}

// buildArgs is "docker build" without a network: this machine's Go and what it
// has downloaded take the place of those of golang:1.26.
func buildArgs() []string {
	volumes := []string{goEnv("GOROOT") + ":/usr/local/go:ro", goEnv("GOMODCACHE") + ":/modules:ro", goEnv("GOCACHE") + ":/cache"}
	args := []string{
		"buildah", "bud", "--isolation", "chroot", "--format", "docker", "--pull-never", "--layers",
		"--build-arg", "TARGETOS=", "--build-arg", "TARGETARCH=",
	}
	for _, v := range volumes {
		args = append(args, "--volume", v)
	}
	return args
}

// runBuild is "docker build" in a world.
func runBuild(args []string) int {
	argv := append(buildArgs(), args...)
	path, err := exec.LookPath(argv[0])
	if err == nil {
		err = unix.Exec(path, argv, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "build:", err)
	return 1
}

func goEnv(name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// chartVersion is the tag that the chart asks for.
func chartVersion() string {
	data, err := os.ReadFile(filepath.Join(root, "deploy/helm/egressd/Chart.yaml"))
	if err != nil {
		return "unknown"
	}
	m := regexp.MustCompile(`(?m)^appVersion: *"?([^"\n]+)"?`).FindSubmatch(data)
	if m == nil {
		return "unknown"
	}
	return string(m[1])
}

// rootFS collects files of this machine for an image.
type rootFS struct {
	files map[string]string // name in the image -> file here
	err   error
}

// standInRoot finds the programs and what they load.
func standInRoot() *rootFS {
	r := &rootFS{files: map[string]string{}}
	for _, name := range inStandIn {
		path := filepath.Join("/usr/bin", name)
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join("/bin", name)
		}
		r.add(path, "/usr/bin/"+name)
		r.libraries(path)
	}
	for _, pattern := range []string{"/lib/x86_64-linux-gnu/libnss_*.so.2", "/lib/aarch64-linux-gnu/libnss_*.so.2", "/etc/nsswitch.conf", "/etc/ssl/certs/ca-certificates.crt"} {
		found, _ := filepath.Glob(pattern) // the pattern is well-formed
		for _, f := range found {
			r.add(f, f)
		}
	}
	python, _ := filepath.Glob("/usr/lib/python3.[0-9]*") // as above
	for _, dir := range python {
		r.tree(dir)
	}
	return r
}

func (r *rootFS) add(from, name string) {
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		r.err = errors.Join(r.err, err)
		return
	}
	r.files[name] = real
}

// libraries adds what the loader says that a program needs.
func (r *rootFS) libraries(path string) {
	out, err := exec.Command("ldd", path).Output()
	if err != nil {
		return // static
	}
	for word := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(word, "/") {
			r.add(word, word)
		}
	}
}

func (r *rootFS) tree(dir string) {
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "test" || d.Name() == "__pycache__" || d.Name() == "idlelib" || strings.HasPrefix(d.Name(), "config-")):
			return fs.SkipDir
		case d.Type().IsRegular():
			r.files[name] = name
			if strings.HasSuffix(name, ".so") {
				r.libraries(name)
			}
		}
		return nil
	})
	r.err = errors.Join(r.err, err)
}

// archive is the file system as a tar archive.
func (r *rootFS) archive() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, dir := range []struct {
		name string
		mode int64
	}{{"tmp", 0o1777}, {"run", 0o755}, {"etc", 0o755}, {"work", 0o777}, {"home", 0o755}, {"usr/bin", 0o755}, {"usr/local/bin", 0o755}} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir.name, Mode: dir.mode}); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin", Linkname: "usr/bin"}); err != nil {
		return nil, err
	}
	contents := map[string][]byte{"/etc/passwd": []byte("root:x:0:0:root:/:/bin/sh\nagent:x:10001:10001::/work:/bin/sh\n")}
	for name, from := range r.files {
		data, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		contents[name] = data
	}
	for name, data := range contents {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"), Mode: 0o755, Size: int64(len(data))}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(data); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), w.Close()
}
