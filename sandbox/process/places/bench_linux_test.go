package places

import (
	"testing"

	"egressd/internal/linux/mountinfo"
	"egressd/policy/files"
)

// BenchmarkFind plans for this machine as every start does.
func BenchmarkFind(b *testing.B) {
	mounts, err := mountinfo.Read()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		gate, err := files.Section{}.In(files.Place{Workspace: "/srv/h2m/work", Home: "/root"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Find(Machine{Gate: gate, Mounts: mounts, Roots: []string{"/tmp", "/var/tmp", "/run"}}); err != nil {
			b.Fatal(err)
		}
	}
}
