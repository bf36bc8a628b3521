package job

import (
	"os"
	"time"
)

const (
	maxSaid = 16 << 10        // bytes of launch's own words that are kept
	drain   = 5 * time.Second // for what is left in a pipe when the program has ended
)

// tap is a pipe whose content is kept up to a bound, and shown.
type tap struct {
	in    *os.File // the end to write to
	from  *os.File
	whole chan []byte
}

// newTap makes a tap. More than limit bytes call over, once; what follows them is read
// and dropped. echo may be nil.
func newTap(echo *os.File, limit int64, over func()) (*tap, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t := &tap{in: w, from: r, whole: make(chan []byte, 1)}
	go t.read(echo, limit, over)
	return t, nil
}

func (t *tap) read(echo *os.File, limit int64, over func()) {
	var kept []byte
	defer func() { t.whole <- kept }()
	told := false
	b := make([]byte, 64<<10)
	for {
		n, err := t.from.Read(b)
		if echo != nil && n > 0 {
			if _, werr := echo.Write(b[:n]); werr != nil {
				echo = nil // nobody reads it any more
			}
		}
		room := limit - int64(len(kept))
		kept = append(kept, b[:min(int64(n), room)]...)
		if int64(n) > room && !told {
			told = true
			over()
		}
		if err != nil {
			return
		}
	}
}

// end closes the tap and reports what was kept.
func (t *tap) end() []byte {
	_ = t.in.Close()
	_ = t.from.SetReadDeadline(time.Now().Add(drain)) // whoever still holds the other end
	kept := <-t.whole
	_ = t.from.Close()
	return kept
}
