package cgroup

import (
	"testing"
	"testing/fstest"
)

func TestMemoryMax(t *testing.T) {
	const none = 0
	for _, row := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing to read", nil, none},
		{"version 2, in a container", map[string]string{proc: "0::/\n", mounts + "/memory.max": "268435456\n"}, 268435456},
		{"version 2, no limit", map[string]string{proc: "0::/\n", mounts + "/memory.max": "max\n"}, none},
		{"version 2, a parent's", map[string]string{
			proc: "0::/a/b\n", mounts + "/a/b/memory.max": "max\n", mounts + "/a/memory.max": "1000\n",
		}, 1000},
		{"version 2, the smaller", map[string]string{
			proc: "0::/a/b\n", mounts + "/a/b/memory.max": "500\n", mounts + "/a/memory.max": "1000\n",
		}, 500},
		{"version 1", map[string]string{
			proc: "5:cpu,cpuacct:/x\n4:memory:/x\n", mounts + "/memory/x/memory.limit_in_bytes": "7000\n", mounts + "/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 7000},
		{"version 1, no limit", map[string]string{proc: "4:memory:/\n", mounts + "/memory/memory.limit_in_bytes": "9223372036854771712\n"}, none},
		{"a path that climbs", map[string]string{proc: "0::/../../x\n", mounts + "/memory.max": "300\n"}, 300},
		{"rubbish", map[string]string{proc: "x\n::\n0::/\n", mounts + "/memory.max": "-5\n"}, none},
	} {
		root := fstest.MapFS{}
		for name, text := range row.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got, found := MemoryMax(root); got != row.want && found || found != (row.want != none) {
			t.Errorf("%s: %d, %v; want %d", row.name, got, found, row.want)
		}
	}
}
