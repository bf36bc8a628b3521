package kept

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
)

// cameBack is what runs elsewhere left in a workspace.
type cameBack struct {
	Version   int               `json:"version"` // 1
	Workspace string            `json:"workspace"`
	Sums      map[string]string `json:"sums"` // SHA-256 by path
}

// maxSums bounds what is remembered of one workspace; beyond it the last run
// alone counts.
const maxSums = 20_000

func cameBackFile(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return path.Join("workspaces", hex.EncodeToString(sum[:16])+".json")
}

func (s *Store) cameBack(workspace string) (cameBack, error) {
	c, err := read(s, cameBackFile(workspace), func(c *cameBack) int { return c.Version })
	if errors.Is(err, ErrNotFound) || err == nil && c.Workspace != workspace {
		return cameBack{Version: 1, Workspace: workspace}, nil
	}
	return c, err
}

// CameBack reports the files that earlier runs elsewhere left in a workspace, by
// path, as they were then.
func (s *Store) CameBack(workspace string) (map[string][sha256.Size]byte, error) {
	c, err := s.cameBack(workspace)
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

// AddCameBack remembers what a run left.
func (s *Store) AddCameBack(workspace string, sums map[string][sha256.Size]byte) error {
	if len(sums) == 0 {
		return nil
	}
	if err := s.root.MkdirAll("workspaces", 0o700); err != nil {
		return err
	}
	return s.locked("workspaces", func() error {
		c, err := s.cameBack(workspace)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		if c.Sums == nil || len(c.Sums)+len(sums) > maxSums || err != nil {
			c = cameBack{Version: 1, Workspace: workspace, Sums: make(map[string]string, len(sums))}
		}
		for name, sum := range sums {
			if len(c.Sums) < maxSums {
				c.Sums[name] = hex.EncodeToString(sum[:])
			}
		}
		return s.write(cameBackFile(workspace), c)
	})
}
