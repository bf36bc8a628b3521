//go:build system

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// startEngine puts an engine into the world of s: the real docker command finds
// Podman there, which speaks the same API, with images of its own.
func startEngine(t *testing.T, s *shell) {
	t.Helper()
	sharedImages.need(t)
	store := storeDir(s.dir)
	for name, text := range map[string]string{
		"containers.conf": `[engine]
cgroup_manager="cgroupfs"
runtime="runc"
events_logger="file"
helper_binaries_dir=["/usr/lib/podman","/usr/libexec/podman"]
[network]
network_backend="netavark"
network_config_dir="STORE/networks"
[containers]
log_driver="k8s-file"
default_ulimits=["nofile=4096:4096","nproc=4096:4096"]
seccomp_profile="CHECKOUT/deploy/seccomp/agent.json"
volumes=["/etc/ssl/certs/ca-certificates.crt:/etc/ssl/certs/ca-certificates.crt:ro"]
`,
		"storage.conf": `[storage]
driver="overlay"
graphroot="STORE/graph"
runroot="/run/containers/storage"
[storage.options]
additionalimagestores=["IMAGES"]
`,
		"policy.json":     `{"default":[{"type":"insecureAcceptAnything"}]}`,
		"registries.conf": `unqualified-search-registries=["docker.io"]` + "\n",
	} {
		text = strings.NewReplacer("STORE", store, "IMAGES", sharedImages.dir(), "CHECKOUT", filepath.Join(s.dir, "work")).Replace(text)
		if err := os.WriteFile(filepath.Join(store, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.check("export CONTAINERS_CONF=" + store + "/containers.conf CONTAINERS_STORAGE_CONF=" + store + "/storage.conf" +
		" BUILDAH_ISOLATION=chroot && mkdir -p " + store + "/networks"); err != nil {
		t.Fatal(err)
	}
	plugins := filepath.Join(s.dir, "home/.docker/cli-plugins")
	if err := os.MkdirAll(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sharedImages.compose(), filepath.Join(plugins, "docker-compose")); err != nil {
		t.Fatal(err)
	}
	code, out, err := s.run(command{text: "podman system service --time=0 unix:///run/docker.sock &", background: true})
	if err != nil || code != 0 {
		t.Fatalf("no engine: %v, exit code %d\n%s", err, code, out)
	}
	// Podman leaves it to a systemd to run health checks.
	if err := s.check(`while sleep 0.3; do for c in $(podman ps -q --filter health=starting --filter health=healthy --filter health=unhealthy 2>/dev/null); do podman healthcheck run $c; done; done >/dev/null 2>&1 &`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !s.dead {
			_, _, _ = s.run(command{text: "podman rm -fa -t 0"}) // their cgroups outlive the world otherwise
		}
	})
}
