package vercel

import (
	"crypto/rand"
	"strings"
	"sync"
	"syscall"
	"testing"

	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/fake"
)

// A signal reaches what the program has started, and nothing else: a shell that
// waits for a child ends without a second one.
func TestSignalGroup(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		code   int
		said   string
	}{
		"a shell with a child": {`echo ready; sleep 1000; echo never`, 130, "ready\n"},
		"children that heed it": {
			`trap 'echo parent' INT; sh -c 'trap "echo child; exit 5" INT; echo ready; while :; do sleep 0.01; done'; exit 7`, 7, "ready\nchild\nparent\n",
		},
		"without its environment": {`exec env -i sh -c 'trap "exit 9" INT; echo ready; while :; do sleep 0.01; done'`, 9, "ready\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Config{})
			made, err := w.client.Create(t.Context(), api.CreateRequest{Name: "box"})
			must(t, err)
			r := &run{Backend: &w.back, session: session{id: made.Session.ID}, mark: rand.Text()}
			other, err := w.client.Start(t.Context(), r.session.id, api.CommandRequest{Command: "sleep", Args: []string{"1000"}, Env: map[string]string{markVariable: "another"}})
			must(t, err)
			var id, said string
			ready := make(chan struct{})
			heard := sync.OnceFunc(func() { close(ready) })
			go func() {
				<-ready
				r.kill(t.Context(), id, syscall.SIGINT)
			}()
			ended, err := w.client.Run(t.Context(), r.session.id, api.CommandRequest{
				Command: "sh", Args: []string{"-c", tt.script}, Env: map[string]string{markVariable: r.mark},
			}, func(k *api.Command) { id = k.ID }, func(_ string, data []byte) error {
				if said += string(data); strings.HasPrefix(said, "ready\n") {
					heard()
				}
				return nil
			})
			must(t, err)
			if int(*ended.ExitCode) != tt.code || said != tt.said {
				t.Errorf("%d %q", *ended.ExitCode, said)
			}
			if k, err := w.client.Command(t.Context(), r.session.id, other.ID); err != nil || k.Exited() {
				t.Errorf("another program: %+v, %v", k, err)
			}
			r.session.id = "sbx_nothing"
			r.kill(t.Context(), id, syscall.SIGKILL) // of nothing there is nothing to say
			must(t, w.client.Delete(t.Context(), "box", false))
		})
	}
}
