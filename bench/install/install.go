// Package install builds what the benchmarks measure.
package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Launch builds launch and copies it, as installing does: the linker writes
// through a memory map, which leaves its file in the page cache in the smallest
// pieces, and until it leaves the cache a start from it takes up to a
// millisecond longer. It reports the program's name, below dir.
func Launch(ctx context.Context, dir string) (string, error) {
	linked := filepath.Join(dir, "linked")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", linked, "egressd/cmd/launch")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build launch: %w: %s", err, text)
	}
	data, err := os.ReadFile(linked)
	if err != nil {
		return "", err
	}
	installed := filepath.Join(dir, "launch")
	return installed, os.WriteFile(installed, data, 0o755) // #nosec: a program
}
