package watch

import (
	"fmt"
	"io"
	"os"
	"time"
)

// Implementation constants of ReadFile.
const (
	freshTime = 20 * time.Millisecond  // a file as young as that may be on its way
	emptyTime = 200 * time.Millisecond // and an empty one, for as long as that
	readTime  = 300 * time.Millisecond // how long a read waits for its writers
)

// ReadFile is os.ReadFile for a file that others write in place: it reads again
// when the file has changed meanwhile, and waits a moment for one that was
// touched or emptied just now. It fails when the file changes all the time. Use
// it in Changed, so that the next write cannot be read by halves either.
func ReadFile(name string) ([]byte, error) {
	end := time.Now().Add(readTime)
	for {
		data, whole, err := readOnce(name)
		if err != nil {
			return nil, err
		}
		late := time.Now().After(end)
		switch {
		case whole == steady, whole == young && late:
			return data, nil
		case late:
			return nil, fmt.Errorf("%s: it changes while it is read, all the time", name)
		}
		<-time.After(freshTime / 2)
	}
}

// What is known of one reading.
const (
	torn   = iota // the file changed meanwhile
	young         // whole, but written so lately that its writer may go on
	steady        // whole
)

func readOnce(name string) (data []byte, whole int, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, torn, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, torn, err
	}
	if data, err = io.ReadAll(f); err != nil {
		return nil, torn, err
	}
	if !before.Mode().IsRegular() {
		return data, steady, nil
	}
	// By name again: what a rename has replaced is stale, though whole.
	was, _ := stateOf(before)
	is, _ := examine(name)
	switch age := time.Since(before.ModTime()); {
	case is != was || int64(len(data)) != was.size:
		return data, torn, nil
	case age >= 0 && (age < freshTime || len(data) == 0 && age < emptyTime):
		return data, young, nil // a time in the future is a clock that jumped, and says nothing
	}
	return data, steady, nil
}
