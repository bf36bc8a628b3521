package number

import "testing"

func TestParse(t *testing.T) {
	for in, want := range map[string]int64{"12": 12, " -3\t": -3, "+4": 4, "0": 0} {
		if got, ok := Parse(in); !ok || got != want {
			t.Errorf("Parse(%q) = %d, %v, want %d", in, got, ok, want)
		}
	}
	for _, in := range []string{"", " ", "x", "1x", "+-1", "0x10", "1.5", "99999999999999999999"} {
		if got, ok := Parse(in); ok {
			t.Errorf("Parse(%q) = %d", in, got)
		}
	}
}

func TestLeading(t *testing.T) {
	for in, want := range map[string]int64{"": 0, "x": 0, "5.2": 5, "007": 7, "-1": 0} {
		if got := Leading(in); got != want {
			t.Errorf("Leading(%q) = %d, want %d", in, got, want)
		}
	}
}
