package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// nfpm writes deb, rpm and apk. The newest version that the Go module proxy has with all that it imports.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.0"

// place says where a package has a file of the archive, and in which formats ("" for all).
type place struct{ from, to, format string }

// places are the files of a package. The profile is for AppArmor, which RPM distributions and Alpine do without.
var places = []place{
	{"launch", "/usr/bin/launch", ""},
	{"egressd", "/usr/bin/egressd", ""},
	{"man/launch.1", "/usr/share/man/man1/launch.1", ""},
	{"man/egressd.1", "/usr/share/man/man1/egressd.1", ""},
	{"completions/launch.bash", "/usr/share/bash-completion/completions/launch", ""},
	{"completions/egressd.bash", "/usr/share/bash-completion/completions/egressd", ""},
	{"completions/_launch", "/usr/share/zsh/site-functions/_launch", ""},
	{"completions/_egressd", "/usr/share/zsh/site-functions/_egressd", ""},
	{"completions/launch.fish", "/usr/share/fish/vendor_completions.d/launch.fish", ""},
	{"completions/egressd.fish", "/usr/share/fish/vendor_completions.d/egressd.fish", ""},
	{"LICENSE", "/usr/share/doc/egressd/copyright", ""},
	{"README.md", "/usr/share/doc/egressd/README.md", ""},
	{"apparmor/egressd-launch", "/etc/apparmor.d/egressd-launch", "deb"},
	{"systemd/egressd.service", "/usr/lib/systemd/system/egressd.service", "deb rpm"},
	{"systemd/egressd.socket", "/usr/lib/systemd/system/egressd.socket", "deb rpm"},
	{"systemd/egressd-admin.socket", "/usr/lib/systemd/system/egressd-admin.socket", "deb rpm"},
	{"systemd/egressd-control.socket", "/usr/lib/systemd/system/egressd-control.socket", "deb rpm"},
}

// loadProfile runs after a deb is unpacked, where AppArmor is in use and knows the profile's abi. Without the profile
// launch still refuses to run weaker, and `launch doctor` says what is missing.
const loadProfile = `#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /sys/kernel/security/apparmor ] && [ -e /etc/apparmor.d/abi/4.0 ] && command -v apparmor_parser >/dev/null; then
  apparmor_parser -r /etc/apparmor.d/egressd-launch || echo "egressd: the AppArmor profile is not loaded: run launch doctor" >&2
fi
`

// unloadProfile runs before a deb's files are removed.
const unloadProfile = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /sys/kernel/security/apparmor ] && command -v apparmor_parser >/dev/null; then
  apparmor_parser -R /etc/apparmor.d/egressd-launch 2>/dev/null || true
fi
`

var formats = []string{"deb", "rpm", "apk"}

// manifest is nfpm's configuration for one format.
func manifest(version, arch, format, dir string, at time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, `name: egressd
arch: %s
platform: linux
version: %s
section: net
maintainer: egressd <%s>
description: |
  Gate for the egress of AI agents: deny by default, allow by name, record everything.
  launch runs a program behind the gate, egressd is the gate as a daemon.
homepage: %s
license: Apache-2.0
mtime: %s
`, arch, version, project, project, at.Format(time.RFC3339))
	if format == "deb" {
		fmt.Fprintf(&b, "scripts:\n  postinstall: %[1]s/postinstall\n  preremove: %[1]s/preremove\n", dir)
	}
	b.WriteString("contents:\n")
	for _, p := range places {
		if p.format != "" && !strings.Contains(" "+p.format+" ", " "+format+" ") {
			continue
		}
		mode, kind := "0644", ""
		if strings.HasPrefix(p.to, "/usr/bin/") {
			mode = "0755"
		}
		if strings.HasPrefix(p.to, "/etc/") {
			kind = "\n    type: config"
		}
		fmt.Fprintf(&b, "  - src: %s/%s\n    dst: %s%s\n    file_info:\n      mode: %s\n      owner: root\n      group: root\n      mtime: %s\n",
			dir, p.from, p.to, kind, mode, at.Format(time.RFC3339))
	}
	return b.String()
}

// packages makes a deb, an rpm and an apk of an archive's entries, in out.
func (r *release) packages(arch string, entries []entry) error {
	dir, err := os.MkdirTemp("", "egressd-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	entries = append(entries[:len(entries):len(entries)], entry{"postinstall", 0o755, []byte(loadProfile)}, entry{"preremove", 0o755, []byte(unloadProfile)})
	for _, e := range entries {
		data := e.data
		if strings.HasSuffix(e.name, ".service") { // the archive's is for /usr/local
			data = []byte(strings.ReplaceAll(string(data), "/usr/local/bin/", "/usr/bin/"))
		}
		path := filepath.Join(dir, e.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, os.FileMode(e.mode))); err != nil {
			return err
		}
	}
	target, err := filepath.Abs(r.out)
	if err != nil {
		return err
	}
	for _, format := range formats {
		config := filepath.Join(dir, "nfpm."+format+".yaml")
		if err := os.WriteFile(config, []byte(manifest(strings.TrimPrefix(r.version, "v"), arch, format, dir, r.time)), 0o600); err != nil {
			return err
		}
		tool := []string{"go", "run", nfpm}
		if r.nfpm != "" {
			tool = []string{r.nfpm}
		}
		cmd := exec.Command(tool[0], append(tool[1:], "package", "--config", config, "--packager", format, "--target", target)...)
		cmd.Env = append(cmd.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
		cmd.Dir = dir // outside the module
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the %s for %s: %w: %s", format, arch, err, text)
		}
	}
	return nil
}
