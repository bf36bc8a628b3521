package vercel

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A sandbox that is kept gets the gate once.
//
// Threat: the program swaps what is kept there, to be started in the gate's stead, or
// makes it a link, whose target would be overwritten, or a FIFO, on which a run would
// wait.
func TestGateKept(t *testing.T) {
	t.Parallel()
	w, base := gated(t)
	w.back.Name, w.back.Synced = "box", &memory{}
	w.files("a", "1")
	kept := "/vercel/" + gateName
	var sent atomic.Int64
	w.watch(func(_ int, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/fs/write") {
			r.Body = &countedBody{r.Body, &sent}
		}
	})
	for i, step := range []struct {
		script string
		sent   bool
	}{
		{`cmp -s ` + kept + ` /tmp/.launch-*-egressd && echo kept`, true},
		{`printf '#!/bin/sh\ntouch /vercel/workspace/owned\n' >fake; truncate -s "$(stat -c %s ` + kept + `)" fake; chmod 700 fake; mv -f fake ` + kept, false},
		{`rm ` + kept + `; mkfifo ` + kept, true},
		{`echo mine >/vercel/target; ln -sfT /vercel/target ` + kept, true},
		{`cat /vercel/target`, true},
		{`:`, false},
	} {
		w.ok(0, ask("GET", "https://api"+base+"/v1/x")+"\n"+step.script)
		got := w.read(w.out)
		if !strings.HasPrefix(got, "200 GET api") {
			t.Errorf("run %d: the gate does not lead out: %q", i, got)
		}
		if i == 0 && !strings.HasSuffix(got, "\nkept\n") || i == 4 && !strings.HasSuffix(got, "\nmine\n") {
			t.Errorf("run %d printed %q", i, got)
		}
		if n := sent.Swap(0); (n > 1<<20) != step.sent {
			t.Errorf("run %d: %d bytes were sent; all of the gate: %t", i, n, step.sent)
		}
	}
	w.has("owned", "-")
}

// countedBody counts what is sent.
type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}
