package vercel

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"egressd/sandbox/vercel/fake"
)

// A pipe of the same pipeline is waited for, although nothing is on it when all
// else is ready; a pipe that only this process's parents or children hold open is
// not.
func TestPipeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	r, held, err := os.Pipe()
	must(t, err)
	defer r.Close()
	if inPipeline(r) {
		t.Error("this process's own end counts")
	}
	child := exec.CommandContext(t.Context(), "cat")
	stop, err := child.StdinPipe()
	must(t, err)
	child.Stdout = held
	must(t, child.Start())
	if inPipeline(r) {
		t.Error("a child's end counts")
	}
	must(t, stop.Close())
	must(t, child.Wait())
	begin := neighbour(t, held, "read x; echo late")
	must(t, held.Close())
	if !inPipeline(r) {
		t.Error("the pipeline was not seen")
	}
	spec := w.spec("cat; echo end")
	spec.Stdin = r
	spec.Notes = func(line string) {
		if strings.Contains(line, "waiting for the end of the standard input") {
			_ = begin.Close() // only now it writes
		}
	}
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if out := w.read(w.out); out != "late\nend\n" {
		t.Errorf("got %q", out)
	}
	w.clean()
}

// A neighbour that ends without a word is not waited for, although somebody else
// holds the pipe open: it was never one, or has no input to give.
func TestPipelineEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	r, held, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer held.Close()
	begin := neighbour(t, held, "read x")
	spec := w.spec("cat; echo end")
	spec.Stdin = r
	notSent := false
	spec.Notes = func(line string) {
		if strings.Contains(line, "waiting for the end of the standard input") {
			_ = begin.Close()
		}
		notSent = notSent || strings.Contains(line, "is not sent")
	}
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if out := w.read(w.out); out != "end\n" || !notSent {
		t.Errorf("got %q, said that it was not sent: %t", out, notSent)
	}
	w.clean()
}

// neighbour starts the program before launch in a pipeline: of the same group, and
// neither above this process nor below it. Its input ends when the caller closes
// what is returned.
func neighbour(t *testing.T, out *os.File, script string) io.Closer {
	t.Helper()
	r, begin, err := os.Pipe()
	must(t, err)
	defer r.Close()
	t.Cleanup(func() { _ = begin.Close() })
	sh := exec.CommandContext(t.Context(), "sh", "-c", "exec 3<&0; { "+script+"; } <&3 &")
	sh.Stdin, sh.Stdout = r, out
	must(t, sh.Run())
	return begin
}

// More than memory should hold is kept in a file without a name.
func TestLongInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	in := w.file("long")
	must(t, in.Truncate(70<<20))
	spec := w.spec("wc -c")
	spec.Stdin = in
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if out := strings.TrimSpace(w.read(w.out)); out != "73400320" {
		t.Errorf("got %q", out)
	}
	w.clean()
}
