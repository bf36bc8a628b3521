package vercel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"egressd/sandbox/vercel/api"
)

// The service's commands have no standard input. What is known whole before the
// program starts, a file or a pipe that has ended, is a file there. Any other pipe is
// read as it comes: its parts are files there, which a command of ours, the feeder,
// passes through a FIFO to the program, and reports, so that no more than a few are
// there at a time. A pipe that nobody writes to stays open there, as it does here.

// Bounds of a standard input.
const (
	maxStdin  = 1 << 30 // bytes of a file
	partBytes = 4 << 20 // of one part
	readBytes = 64 << 10
	window    = 2 // parts that are there and were not passed on yet
)

// spool is a standard input, or its beginning, in a file here without a name. Nil is
// none.
type spool struct {
	file *os.File
	size int64
}

func (s *spool) close() {
	if s != nil {
		_ = s.file.Close()
	}
}

// input is the program's standard input there. Nil: there is none.
type input struct {
	r    *run
	name string // of the file or FIFO there

	// Of one that comes in parts.
	read  chan chunk    // what was read here; nil: all is in the file
	room  chan struct{} // holds an element for each part that was not passed on
	ready chan struct{} // closed when the FIFO is there
	wake  func()        // ends the reading here
	lost  context.Context
	lose  context.CancelCauseFunc // with why the rest will not come

	pump, feed context.CancelFunc // end what they name
	pumped     chan struct{}
	fed        chan struct{}
	feeder     chan string // gets the feeder's id
	err        error       // of the feeder, read after fed
}

// chunk is what one reading came to. err is io.EOF at the end.
type chunk struct {
	data []byte
	err  error
}

// feederScript makes the FIFO $0.pipe and passes the files $0.1, $0.2, ... on. A file
// $0.N.ok says how many bytes the file $0.N has, or that N is beyond the last. A file
// may be written once more while it is copied, by a request whose answer was lost: a
// copy that has all bytes is right. It prints a line when the FIFO is there and one
// for each file. Idle, it looks 20 times a second, later less often, since the
// service counts processor time.
const feederScript = `mkfifo -m 600 -- "$0.pipe" || exit 1
echo ready
exec 3>"$0.pipe" || exit 1
n=1
while :; do
	i=0 wait=.05
	until read -r size 2>/dev/null <"$0.$n.ok"; do
		i=$((i+1))
		case $i in 40) wait=.2;; 300) wait=1;; esac
		sleep "$wait" || sleep 1 || exit 1
	done
	[ "$size" != end ] || exit 0
	i=0
	until cp -- "$0.$n" "$0.now" && [ "$(wc -c <"$0.now")" -eq "$size" ]; do
		i=$((i+1))
		[ "$i" -lt 100 ] || exit 1
		sleep .05 || sleep 1 || exit 1
	done
	cat -- "$0.now" >&3 2>/dev/null || exit 0
	rm -f -- "$0.$n" "$0.$n.ok" "$0.now"
	echo "$n"
	n=$((n+1))
done`

// whole writes all of s into a file there.
func (r *run) whole(ctx context.Context, s *spool) (*input, error) {
	in := &input{r: r, name: r.temporary("stdin")}
	return in, r.Client.WriteFiles(ctx, r.session.id, slices.Values([]api.File{{
		Path: in.name, Mode: 0o600, Size: s.size,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(s.file, 0, s.size)), nil },
	}}), nil)
}

// stream passes on what comes on in.read, and returns when the program may start.
func (in *input) stream(ctx context.Context) error {
	base := in.r.temporary("stdin")
	in.name = base + ".pipe"
	in.room, in.ready, in.feeder = make(chan struct{}, window), make(chan struct{}), make(chan string, 1)
	in.pumped, in.fed = make(chan struct{}), make(chan struct{})
	in.lost, in.lose = context.WithCancelCause(context.WithoutCancel(ctx))
	var pumping, feeding context.Context
	pumping, in.pump = context.WithCancel(context.WithoutCancel(ctx))
	feeding, in.feed = context.WithCancel(context.WithoutCancel(ctx))
	go in.follow(feeding, api.CommandRequest{Command: "sh", Args: []string{"-c", feederScript, base}, Cwd: "/"})
	go func() {
		defer close(in.pumped)
		if err := in.pass(pumping, base); err != nil && pumping.Err() == nil {
			in.lose(err)
		}
	}()
	ready := time.NewTimer(bootTime)
	defer ready.Stop()
	var err error
	select {
	case <-in.ready:
		return nil
	case <-in.fed:
		err = errors.Join(in.err, errors.New("what passes it on in the sandbox ended at once"))
	case <-in.lost.Done():
		err = context.Cause(in.lost)
	case <-ready.C:
		err = fmt.Errorf("what passes it on in the sandbox was not ready within %v", bootTime)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = in.stop() // err says it
	return err
}

// follow runs the feeder, and reads what it reports.
func (in *input) follow(ctx context.Context, request api.CommandRequest) {
	defer close(in.fed)
	began := false
	ended, err := in.r.Client.Run(ctx, in.r.session.id, request, func(c *api.Command) { in.feeder <- c.ID }, func(stream string, data []byte) error {
		if stream != "stdout" {
			return nil
		}
		for range bytes.Count(data, []byte("\n")) {
			if !began {
				began = true
				close(in.ready)
				continue
			}
			select {
			case <-in.room:
			default: // more than there were parts
			}
		}
		return nil
	})
	if err == nil {
		if code := int(*ended.ExitCode); code != 0 && code != exitSignal+int(syscall.SIGTERM) { // stop sends that one
			err = fmt.Errorf("what passes it on in the sandbox ended with %d: the program may have seen only a part", code)
		}
	}
	if err != nil && ctx.Err() == nil {
		in.err = err
		in.lose(err)
	}
}

// pass writes the parts there until there are no more, or nobody there wants them. A
// program whose input broke off must not take what it got for all.
func (in *input) pass(ctx context.Context, base string) error {
	for n := 1; ; {
		part, over, err := in.next(ctx)
		if err != nil {
			return err
		}
		if len(part) > 0 {
			select {
			case in.room <- struct{}{}:
			case <-in.fed:
				return nil
			case <-ctx.Done():
				return nil
			}
			if err := in.put(ctx, base+"."+strconv.Itoa(n), part, strconv.Itoa(len(part))); err != nil {
				return err
			}
			n++
		}
		select {
		case <-in.fed:
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
		if over {
			return in.put(ctx, base+"."+strconv.Itoa(n), nil, "end")
		}
	}
}

// put writes a part, and then, in the same archive, that it is there.
func (in *input) put(ctx context.Context, name string, part []byte, word string) error {
	files := []api.File{file(name+".ok", word+"\n")}
	if len(part) > 0 {
		files = slices.Insert(files, 0, api.File{Path: name, Mode: 0o600, Size: int64(len(part)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(part)), nil
		}})
	}
	return in.r.Client.WriteFiles(ctx, in.r.session.id, slices.Values(files), nil)
}

// next waits for something to pass on and takes what there is, up to a part. over
// says that it is the last.
func (in *input) next(ctx context.Context) (part []byte, over bool, err error) {
	var c chunk
	select {
	case c = <-in.read:
	case <-in.fed:
		return nil, true, nil
	case <-ctx.Done():
		return nil, true, nil
	}
	for {
		part = append(part, c.data...)
		switch {
		case errors.Is(c.err, io.EOF):
			return part, true, nil
		case c.err != nil || len(part)+readBytes > partBytes:
			return part, false, c.err
		}
		select {
		case c = <-in.read:
		default:
			return part, false, nil
		}
	}
}

// stop ends what passes the input on, and reports why not all of it came.
func (in *input) stop() error {
	if in == nil || in.read == nil {
		return nil
	}
	in.wake()
	in.pump()
	<-in.pumped
	select {
	case <-in.fed:
	default:
		in.endFeeder()
	}
	in.feed()
	<-in.fed
	if in.err == nil {
		return nil
	}
	return fmt.Errorf("standard input: %w", in.err)
}

// endFeeder ends a feeder that waits for more.
func (in *input) endFeeder() {
	select {
	case id := <-in.feeder:
		in.feeder <- id
		ctx, done := context.WithTimeout(context.Background(), killTime)
		defer done()
		if _, err := in.r.Client.Kill(ctx, in.r.session.id, id, syscall.SIGTERM); err != nil {
			return
		}
		select {
		case <-in.fed:
		case <-ctx.Done():
		}
	default: // it is not known to have begun
	}
}

// losing calls give when the rest of the input will not come.
func (in *input) losing(give func()) (stop func() bool) {
	if in == nil || in.lost == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(in.lost, give)
}

// why is nil unless the rest of the input will not come.
func (in *input) why() error {
	if in == nil || in.lost == nil || in.lost.Err() == nil {
		return nil
	}
	return fmt.Errorf("standard input: %w", context.Cause(in.lost))
}
