package inside

import (
	"testing"

	"egressd/sandbox/hermetic/control"
)

func TestIsWorker(t *testing.T) {
	for _, args := range [][]string{nil, {"launch"}, {"launch", control.Name}, {control.Name, "x"}, {"/bin/" + control.Name}} {
		if IsWorker(args) {
			t.Errorf("%q is a worker", args)
		}
	}
	if !IsWorker([]string{control.Name}) {
		t.Error("a worker is none")
	}
}
