package vercel

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"egressd/sandbox/vercel/fake"
)

// A pipe of the same pipeline is waited for, although nothing is on it when all
// else is ready; a pipe that only this process's parents hold open is not.
func TestPipeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Config{})
	r, held, err := os.Pipe()
	must(t, err)
	defer r.Close()
	if inPipeline(r) {
		t.Error("this process's own end counts")
	}
	// The program before launch in the pipeline: of the same group, and not above it.
	begin, gate, err := os.Pipe()
	must(t, err)
	slow := exec.CommandContext(t.Context(), "sh", "-c", "read x; echo late")
	slow.Stdin, slow.Stdout = begin, held
	must(t, slow.Start())
	must(t, held.Close())
	must(t, begin.Close())
	if !inPipeline(r) {
		t.Error("the pipeline was not seen")
	}
	spec := w.spec("cat; echo end")
	spec.Stdin = r
	spec.Notes = func(line string) {
		if strings.Contains(line, "waiting for the end of the standard input") {
			_ = gate.Close() // only now it writes
		}
	}
	if res, err := w.back.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if out := w.read(w.out); out != "late\nend\n" {
		t.Errorf("got %q", out)
	}
	must(t, slow.Wait())
	w.clean()
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
