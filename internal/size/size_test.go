package size

import "testing"

func TestParse(t *testing.T) {
	for s, want := range map[string]int64{
		"1": 1, "1000": 1000, "64K": 64 << 10, "64k": 64 << 10, "512M": 512 << 20, "2G": 2 << 30, "4294967296G": 1 << 62,
		"": 0, "0": 0, "K": 0, "1KK": 0, "-1": 0, "1.5G": 0, "4294967297G": 0, "1T": 0, "0x10": 0, " 1": 0, "1 K": 0,
	} {
		if got, err := Parse(s); got != want || (err != nil) != (want == 0) {
			t.Errorf("%q: %d, %v", s, got, err)
		}
	}
}
