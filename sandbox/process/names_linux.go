package process

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// resolvConf is what the stub resolver inside reads. Port 53 of every address
// is the DNS door, so any address works; a loopback one works without a route
// and is what resolvers expect of a local stub.
const resolvConf = "# The gate answers here, whatever address is asked.\nnameserver 127.0.0.1\n"

// resolvTarget reports the file behind /etc/resolv.conf, "" when there is none.
func resolvTarget() string {
	const path = "/etc/resolv.conf"
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	// Dangling: the target may lie in a directory that becomes private.
	link, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	if !filepath.IsAbs(link) {
		link = filepath.Join("/etc", link)
	}
	return filepath.Clean(link)
}

// loopbackHosts reports the lines of /etc/hosts that name loopback addresses.
// Every other name must be asked at the DNS door, or a connection would arrive
// as a bare address that no rule knows.
func loopbackHosts() *string {
	data, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return nil
	}
	out := []byte("# Every other name is answered by the gate.\n")
	for line := range bytes.Lines(data) {
		addr, _, _ := strings.Cut(strings.TrimSpace(string(line)), "#")
		fields := strings.Fields(addr)
		if len(fields) < 2 {
			continue
		}
		if a, err := netip.ParseAddr(fields[0]); err == nil && a.IsLoopback() {
			out = append(out, strings.Join(fields, " ")+"\n"...)
		}
	}
	text := string(out)
	return &text
}

// runtimeDir is where the run's own files are: the resolver's configuration
// and the session's certificates.
func runtimeDir() string {
	for _, base := range []string{"/run", "/tmp"} {
		if fi, err := os.Lstat(base); err == nil && fi.IsDir() {
			return base + "/egressd"
		}
	}
	return "/dev/egressd"
}

// mountNames makes names inside resolve at the DNS door.
func (in *initProcess) mountNames(*picked) error {
	files := map[string][]byte{"resolv.conf": []byte(resolvConf)}
	if in.cfg.Plan.Hosts != nil {
		files["hosts"] = []byte(*in.cfg.Plan.Hosts)
	}
	if in.cfg.CA != nil {
		files["ca.pem"] = in.cfg.CA
	}
	dir := runtimeDir()
	if err := mountFiles(dir, files); err != nil {
		return err
	}
	if in.cfg.Plan.Hosts != nil {
		if err := bindOver(dir+"/hosts", "/etc/hosts", true); err != nil {
			return err
		}
	}
	if in.cfg.Plan.Resolv == "" {
		return nil // the C library asks 127.0.0.1 by itself
	}
	if below(in.cfg.Plan.Resolv, in.cfg.Plan.Roots) {
		if err := mountPoint(in.cfg.Plan.Resolv, false); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(in.cfg.Plan.Resolv); err != nil {
		return nil //nolint:nilerr // a dangling link elsewhere: as if there were none
	}
	return bindOver(dir+"/resolv.conf", in.cfg.Plan.Resolv, true)
}

// mountFiles mounts a read-only file system that holds files on dir.
func mountFiles(dir string, files map[string][]byte) error {
	t, err := newTree("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, [2]string{"mode", "755"}, [2]string{"size", "16m"})
	if err != nil {
		return err
	}
	for name, data := range files {
		fd, err := unix.Openat(int(t), name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o444)
		if err != nil {
			t.discard()
			return fmt.Errorf("%s: %w", name, err)
		}
		f := os.NewFile(uintptr(fd), name)
		_, err = f.Write(data)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			t.discard()
			return err
		}
	}
	if err := t.readOnly(); err != nil {
		t.discard()
		return err
	}
	if err := mountPoint(dir, true); err != nil {
		return err
	}
	return t.attach(dir)
}
