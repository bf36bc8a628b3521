package ship

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxPosition bounds a state file, in bytes.
const maxPosition = 4 << 10

// position is how far lines were taken: of which file, and where the next one begins.
type position struct {
	Dev    uint64 `json:"dev"`
	Ino    uint64 `json:"ino"`   // 0: of no file yet
	First  string `json:"first"` // hash of its first line: numbers are given again
	Offset int64  `json:"offset"`
}

// same reports whether two files have the same number.
func (p position) same(q position) bool { return p.Dev == q.Dev && p.Ino == q.Ino }

// readPosition reads a state file. If it is missing, nothing was taken.
func readPosition(name string) (p position, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return position{}, nil
	}
	if err != nil {
		return position{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPosition))
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err == nil && p.Offset < 0 {
		err = errors.New("a position before the beginning")
	}
	return p, err
}

// writePosition replaces a state file. After a crash of the machine an older one may
// be there: lines come again, and none is left out.
func writePosition(name string, p position) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error before says more
	}
	return err
}
