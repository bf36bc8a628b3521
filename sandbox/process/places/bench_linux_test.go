package places

import (
	"path/filepath"
	"testing"

	"egressd/internal/linux/mountinfo"
	"egressd/policy/files"
)

// BenchmarkFind plans for this machine as every start does, in a small working
// directory and in this repository.
func BenchmarkFind(b *testing.B) {
	repository, err := filepath.Abs("../../..")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("empty", func(b *testing.B) { benchmarkFind(b, b.TempDir()) })
	b.Run("repository", func(b *testing.B) { benchmarkFind(b, repository) })
}

func benchmarkFind(b *testing.B, work string) {
	mounts, err := mountinfo.Read()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		gate, err := files.Section{}.In(files.Place{Workspace: work, Home: "/root"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Find(Machine{Gate: gate, Mounts: mounts, Roots: []string{"/tmp", "/var/tmp", "/run"}}); err != nil {
			b.Fatal(err)
		}
	}
}
