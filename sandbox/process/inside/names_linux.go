package inside

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// resolvConf is what the stub resolver inside reads. Port 53 of every address
// is the DNS door, so any address works; a loopback one works without a route
// and is what resolvers expect of a local stub.
const resolvConf = "# The gate answers here, whatever address is asked.\nnameserver 127.0.0.1\n"

// mountNames makes names inside resolve at the DNS door.
func (b *builder) mountNames() error {
	files := map[string][]byte{"resolv.conf": []byte(resolvConf)}
	if b.cfg.Plan.Hosts != nil {
		files["hosts"] = []byte(*b.cfg.Plan.Hosts)
	}
	if b.cfg.CA != nil {
		files["ca.pem"] = b.cfg.CA
	}
	dir := b.cfg.Plan.Own
	if err := mountFiles(dir, files); err != nil {
		return err
	}
	if b.cfg.Plan.Hosts != nil {
		if err := bindOver(dir+"/hosts", "/etc/hosts", true); err != nil {
			return err
		}
	}
	if b.cfg.Plan.Resolv == "" {
		return nil // the C library asks 127.0.0.1 by itself
	}
	if below(b.cfg.Plan.Resolv, b.cfg.Plan.Roots) {
		if err := mountPoint(b.cfg.Plan.Resolv, false); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(b.cfg.Plan.Resolv); err != nil {
		return nil //nolint:nilerr // a dangling link elsewhere: as if there were none
	}
	return bindOver(dir+"/resolv.conf", b.cfg.Plan.Resolv, true)
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
		if err == nil {
			err = f.Chmod(0o444) // whatever the umask: other users inside read it, too
		}
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
