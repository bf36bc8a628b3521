package inode

import "testing"

func TestUnits(t *testing.T) {
	human, si := Units{Human: true}, Units{Human: true, SI: true}
	for _, c := range []struct {
		u    Units
		n    int64
		want string
	}{
		{Units{}, 5, "5"},
		{Units{Block: 1024}, 1025, "2"},
		{Units{Block: 1 << 20, Suffix: "M"}, 1, "1M"},
		{human, 1023, "1023"},
		{human, 1024, "1.0K"},
		{human, 1025, "1.1K"},
		{human, 10239, "10K"},
		{human, 10241, "11K"},
		{human, 1<<20 - 1, "1.0M"},
		{human, 1<<63 - 1, "8.0E"},
		{si, 1500, "1.5k"},
		{si, 999999, "1.0M"},
	} {
		if got := c.u.Format(c.n); got != c.want {
			t.Errorf("%d in %+v is %s, want %s", c.n, c.u, got, c.want)
		}
	}
	for _, bad := range []string{"", "x", "0", "1Q", "K1", "99999999999999999999", "9999999E"} {
		if u, ok := ParseUnits(bad); ok {
			t.Errorf("%q is taken for %+v", bad, u)
		}
	}
}
