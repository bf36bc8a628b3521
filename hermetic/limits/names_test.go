package limits

import (
	"reflect"
	"strings"
	"testing"
)

// Every bound has a name, the one in its tag.
func TestFields(t *testing.T) {
	var l Limits
	v := reflect.ValueOf(&l).Elem()
	fields := l.Fields()
	if len(fields) != v.NumField() {
		t.Fatalf("%d of %d bounds have names", len(fields), v.NumField())
	}
	for i, f := range fields {
		tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if f.Name != tag || f.Value != v.Field(i).Addr().Interface() {
			t.Errorf("bound %d is called %s; its tag says %s", i, f.Name, tag)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "10K": 10 << 10, "3m": 3 << 20, "2G": 2 << 30, "": 0, "0": 0, "-1": 0, "K": 0, "1KK": 0, "1T": 0, "1.5G": 0, "9000000000000000000G": 0} {
		got, err := size(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}
