package shell

import (
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// TestTerminals checks which descriptors are terminals, also after they were
// duplicated.
func TestTerminals(t *testing.T) {
	const script = `for n in 0 1 2 3; do [ -t $n ]; echo -n $?; done; exec 5>&2; [[ -t 5 ]]; echo -n $?; test -t 2 2>/dev/null; echo -n $?`
	for _, tt := range []struct {
		is   [3]bool
		want string
	}{
		{[3]bool{}, "111111"},
		{[3]bool{true, false, true}, "010101"},
		{[3]bool{true, true, true}, "000101"},
	} {
		ctx, budget, stop := limits.New(t.Context(), limits.Limits{})
		defer stop()
		fs, err := vfs.Open(vfs.Config{Dir: t.TempDir(), Written: budget.Written})
		if err != nil {
			t.Fatal(err)
		}
		defer fs.Close()
		var out buffer
		if _, err := Run(ctx, Config{
			Name: "bash", Dir: "/", Stdout: &out, Stderr: &out, Terminals: tt.is,
			Session: &command.Session{FS: fs, Budget: budget, Now: time.Now},
		}, script); err != nil {
			t.Fatal(err)
		}
		if out.String() != tt.want {
			t.Errorf("%v: %s, want %s", tt.is, out.String(), tt.want)
		}
	}
}
