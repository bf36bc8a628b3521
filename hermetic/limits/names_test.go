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
