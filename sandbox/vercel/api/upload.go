package api

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// File is one regular file to be written.
type File struct {
	Path    string      // absolute inside
	Mode    fs.FileMode // permission bits; 0: 0644; fs.ModeIrregular: none of them
	Size    int64       // bytes that Open gives, exactly
	ModTime time.Time   // zero: now

	// Open is called once for each attempt to send the file.
	Open func() (io.ReadCloser, error)
}

// Bounds of one request of WriteFiles. A larger file goes alone.
const (
	batchBytes = 64 << 20
	batchFiles = 5000

	batchTimeout = 30 * time.Minute // for all attempts
)

// WriteFiles writes files, in as many requests as it takes; missing directories
// are made. done, which may be nil, is called after each request with the files
// and bytes it sent. What is held in memory is a list of one batch's files. After
// an error some files may be there and others not.
func (c *Client) WriteFiles(ctx context.Context, session string, files iter.Seq[File], done func(files int, bytes int64)) error {
	var batch []File
	var size int64
	send := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := c.writeBatch(ctx, session, batch); err != nil {
			return err
		}
		if done != nil {
			done(len(batch), size)
		}
		batch, size = batch[:0], 0
		return nil
	}
	for f := range files {
		if err := f.validate(); err != nil {
			return fmt.Errorf("write files: %w", err)
		}
		if len(batch) == batchFiles || size+f.Size > batchBytes {
			if err := send(); err != nil {
				return err
			}
		}
		batch, size = append(batch, f), size+f.Size
	}
	return send()
}

func (f *File) validate() error {
	switch {
	case !path.IsAbs(f.Path) || f.Path != path.Clean(f.Path) || f.Path == "/" || strings.ContainsRune(f.Path, 0):
		return invalid("%q is not the clean absolute path of a file", clip(f.Path, 200))
	case f.Size < 0 || f.Open == nil && f.Size > 0:
		return invalid("%q has no content", clip(f.Path, 200))
	}
	return nil
}

// fileError is what reading a file of ours came to. It is not the service's
// fault, and asking again is of no use.
type fileError struct{ err error }

func (e *fileError) Error() string { return e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// writeBatch sends one archive, written while it is read.
func (c *Client) writeBatch(ctx context.Context, session string, batch []File) error {
	at, err := idPath("/v2/sandboxes/sessions/", "session id", session, "/fs/write")
	if err != nil {
		return fmt.Errorf("write files: %w", err)
	}
	// A writer of an attempt ends when the attempt's body is closed, which
	// package http does always.
	var writers sync.WaitGroup
	defer writers.Wait()
	var mu sync.Mutex
	var bad error
	body := func() (io.Reader, error) {
		mu.Lock()
		defer mu.Unlock()
		if bad != nil {
			return nil, bad
		}
		r, w := io.Pipe()
		writers.Go(func() {
			err := writeArchive(w, batch, c.now())
			var own *fileError
			if errors.As(err, &own) {
				mu.Lock()
				bad = own
				mu.Unlock()
			}
			_ = w.CloseWithError(err) // it does not fail
		})
		return r, nil
	}
	r := call{
		op: "write files", method: http.MethodPost, path: at, body: body, session: session, repeat: always, timeout: unpackTime, slides: true,
		header: http.Header{"Content-Type": {"application/gzip"}, "X-Cwd": {"/"}},
	}
	ctx, done := context.WithTimeout(ctx, batchTimeout)
	defer done()
	err = c.do(ctx, r, &struct{}{})
	mu.Lock()
	defer mu.Unlock()
	if bad != nil {
		return fmt.Errorf("write files: %w", bad)
	}
	return err
}

// writeArchive writes a gzip of ustar, with pax headers where a name is too long
// for ustar or not ASCII.
func writeArchive(w io.Writer, batch []File, now time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for i := range batch {
		if err := writeEntry(t, &batch[i], now); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func writeEntry(t *tar.Writer, f *File, now time.Time) error {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.Path, "/"), Size: f.Size,
		Mode: int64(f.Mode.Perm()), ModTime: f.ModTime.Truncate(time.Second),
	}
	if f.Mode == 0 {
		h.Mode = 0o644
	}
	if f.ModTime.IsZero() {
		h.ModTime = now.Truncate(time.Second)
	}
	var r io.ReadCloser
	if f.Open != nil {
		var err error
		if r, err = f.Open(); err != nil {
			return &fileError{err}
		}
		defer r.Close()
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	if f.Size == 0 {
		return nil
	}
	n, err := io.Copy(t, &readError{r: io.LimitReader(r, f.Size)})
	if err == nil && n < f.Size {
		err = &fileError{fmt.Errorf("%s has become shorter while it was read", f.Path)}
	}
	return err
}

// readError marks errors of reading, which are ours, from those of writing.
type readError struct{ r io.Reader }

func (r *readError) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if err != nil && err != io.EOF {
		err = &fileError{err}
	}
	return n, err
}
