package procstat

import (
	"os"
	"testing"
)

func TestParse(t *testing.T) {
	const rest = " 7 5 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000"
	for _, tt := range []struct {
		line string
		want Process
		ok   bool
	}{
		{"12 (cat) S" + rest, Process{State: 'S', Parent: 7, Started: "987654"}, true},
		{"12 (a) R 1 (b)) T" + rest, Process{State: 'T', Parent: 7, Started: "987654"}, true},
		{"12 (cat) S 7 5", Process{}, false},
		{"12 (cat) S x" + rest, Process{}, false},
		{"12 (cat) SS" + rest, Process{}, false},
		{"", Process{}, false},
	} {
		got, err := parse([]byte(tt.line))
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: %+v, %v", tt.line, got, err)
		}
	}
}

func TestRead(t *testing.T) {
	p, err := Read(os.Getpid())
	if err != nil || p.State != 'R' && p.State != 'S' || p.Parent != os.Getppid() || p.Started == "" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Read(1 << 30); err == nil {
		t.Error("there is a process of that number")
	}
}
