package systemd

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  []string
		want []string
		err  string
	}{
		{"none", []string{"PATH=/bin"}, nil, ""},
		{"one", []string{"LISTEN_PID=7", "LISTEN_FDS=1", "LISTEN_FDNAMES=proxy"}, []string{"proxy"}, ""},
		{"two", []string{"LISTEN_PID=7", "LISTEN_FDS=2", "LISTEN_FDNAMES=proxy:dns.a"}, []string{"proxy", "dns.a"}, ""},
		{"zero", []string{"LISTEN_PID=7", "LISTEN_FDS=0"}, nil, ""},
		{"zero with names", []string{"LISTEN_PID=7", "LISTEN_FDS=0", "LISTEN_FDNAMES="}, nil, ""},
		{"another process's", []string{"LISTEN_PID=8", "LISTEN_FDS=1", "LISTEN_FDNAMES=proxy"}, nil, ""},
		{"the first counts", []string{"LISTEN_PID=8", "LISTEN_PID=7", "LISTEN_FDS=1", "LISTEN_FDNAMES=proxy"}, nil, ""},
		{"no pid", []string{"LISTEN_FDS=1", "LISTEN_FDNAMES=proxy"}, nil, "one is missing"},
		{"no count", []string{"LISTEN_PID=7"}, nil, "one is missing"},
		{"no names", []string{"LISTEN_PID=7", "LISTEN_FDS=1"}, nil, "FileDescriptorName="},
		{"fewer names", []string{"LISTEN_PID=7", "LISTEN_FDS=2", "LISTEN_FDNAMES=proxy"}, nil, "has 1 names"},
		{"more names", []string{"LISTEN_PID=7", "LISTEN_FDS=1", "LISTEN_FDNAMES=a:b"}, nil, "has 2 names"},
		{"names without any", []string{"LISTEN_PID=7", "LISTEN_FDS=0", "LISTEN_FDNAMES=a"}, nil, "has 1 names"},
		{"empty name", []string{"LISTEN_PID=7", "LISTEN_FDS=2", "LISTEN_FDNAMES=a:"}, nil, "0 characters"},
		{"long name", []string{"LISTEN_PID=7", "LISTEN_FDS=1", "LISTEN_FDNAMES=" + strings.Repeat("a", 256)}, nil, "256 characters"},
		{"odd name", []string{"LISTEN_PID=7", "LISTEN_FDS=1", "LISTEN_FDNAMES=a\nb"}, nil, "plain ASCII"},
		{"pid of nobody", []string{"LISTEN_PID=0", "LISTEN_FDS=1"}, nil, "not a process id"},
		{"pid with a sign", []string{"LISTEN_PID=+7", "LISTEN_FDS=1"}, nil, "not a process id"},
		{"pid with zeros", []string{"LISTEN_PID=007", "LISTEN_FDS=1"}, nil, "not a process id"},
		{"empty pid", []string{"LISTEN_PID=", "LISTEN_FDS=1"}, nil, "not a process id"},
		{"negative", []string{"LISTEN_PID=7", "LISTEN_FDS=-1"}, nil, "not a number"},
		{"too many", []string{"LISTEN_PID=7", "LISTEN_FDS=1025"}, nil, "not a number"},
		{"overflow", []string{"LISTEN_PID=7", "LISTEN_FDS=4294967299"}, nil, "not a number"},
		{"space", []string{"LISTEN_PID=7", "LISTEN_FDS= 1"}, nil, "not a number"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := names(tt.env, 7)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Whatever the environment says, as many names come out as descriptors are
// claimed, or none.
func FuzzNames(f *testing.F) {
	f.Add("7", "2", "proxy:dns.a")
	f.Add("07", "-1", "::")
	f.Fuzz(func(t *testing.T, pid, fds, list string) {
		got, err := names([]string{"LISTEN_PID=" + pid, "LISTEN_FDS=" + fds, "LISTEN_FDNAMES=" + list}, 7)
		if err != nil || len(got) == 0 {
			if len(got) > 0 {
				t.Fatal("an error comes with names")
			}
			return
		}
		n, nerr := number(fds)
		if pid != "7" || nerr != nil || n != len(got) || n > maxFDs || strings.Join(got, ":") != list {
			t.Fatalf("pid %q, fds %q, names %q: %q", pid, fds, list, got)
		}
	})
}
