package records

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
)

// returned lists the files that hosted runs brought back into a workspace.
type returned struct {
	Version   int               `json:"version"`
	Workspace string            `json:"workspace"`
	Sums      map[string]string `json:"sums"` // SHA-256 by path
}

// maxSums bounds the files of one workspace. Beyond it only those of the last run
// are kept.
const maxSums = 20_000

func returnedFile(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return path.Join("workspaces", hex.EncodeToString(sum[:16])+".json")
}

func (s *Store) returned(workspace string) (returned, error) {
	c, err := read(s, returnedFile(workspace), func(c *returned) int { return c.Version })
	if errors.Is(err, ErrNotFound) || err == nil && c.Workspace != workspace {
		return returned{Version: version, Workspace: workspace}, nil
	}
	return c, err
}

// Returned reports the files that hosted runs brought back into a workspace: the
// SHA-256 of each as it was then, by path.
func (s *Store) Returned(workspace string) (map[string][sha256.Size]byte, error) {
	c, err := s.returned(workspace)
	if err != nil {
		return nil, err
	}
	sums := make(map[string][sha256.Size]byte, len(c.Sums))
	for name, text := range c.Sums {
		if b, err := hex.DecodeString(text); err == nil && len(b) == sha256.Size {
			sums[name] = [sha256.Size]byte(b)
		}
	}
	return sums, nil
}

// AddReturned adds the files of one run to Returned.
func (s *Store) AddReturned(workspace string, sums map[string][sha256.Size]byte) error {
	if len(sums) == 0 {
		return nil
	}
	if err := s.root.MkdirAll("workspaces", 0o700); err != nil {
		return err
	}
	return s.locked("workspaces", func() error {
		c, err := s.returned(workspace)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		if c.Sums == nil || len(c.Sums)+len(sums) > maxSums || err != nil {
			c = returned{Version: version, Workspace: workspace, Sums: make(map[string]string, len(sums))}
		}
		for name, sum := range sums {
			if len(c.Sums) < maxSums {
				c.Sums[name] = hex.EncodeToString(sum[:])
			}
		}
		return s.write(returnedFile(workspace), c)
	})
}
