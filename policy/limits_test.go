package policy

import (
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every field has a key, a place in the reference, and a default that the
// reference tells.
func TestLimitKeys(t *testing.T) {
	data, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := limitKeys()
	if n := reflect.TypeFor[Limits]().NumField(); len(keys) != n {
		t.Fatalf("%d keys for %d fields", len(keys), n)
	}
	var l Limits
	for i, k := range keys {
		switch k := k.(type) {
		case whole[int]:
			*k.field(&l) = i + 1
		case whole[int64]:
			*k.field(&l) = int64(i + 1)
		case rate:
			*k.field(&l) = float64(i) + 1
		default:
			t.Fatalf("%s is a %T", k.key(), k)
		}
	}
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("no key sets %s", v.Type().Field(i).Name)
		}
	}
	defaults := DefaultLimits().lines()
	for _, k := range keys {
		_, row, ok := strings.Cut(string(data), "\n| `"+k.key()+"` |")
		if !ok {
			t.Errorf("%s is not in the reference", k.key())
			continue
		}
		row, _, _ = strings.Cut(row, "\n")
		cell := strings.TrimSpace(strings.Split(row, "|")[1])
		number, _, _ := strings.Cut(strings.Replace(cell, ",", "", 1), " ")
		if want := k.key() + ": " + number; !strings.HasPrefix(cell, "as ") && !strings.HasPrefix(cell, "half ") && !slices.Contains(defaults, want) {
			t.Errorf("the reference says %q, the code %q", want, defaults)
		}
		most := int64(0)
		switch k := k.(type) {
		case whole[int]:
			most = k.most
		case whole[int64]:
			most = k.most
		}
		if most < maxSeconds*10 && most > 0 && !strings.Contains(row, strconv.FormatInt(most, 10)) {
			t.Errorf("%s: at most %d, which the reference does not say: %s", k.key(), most, row)
		}
	}
}

func TestLimitsStricter(t *testing.T) {
	for _, tt := range []struct {
		name       string
		a, b, want Limits
	}{
		{"neither", Limits{}, Limits{}, Limits{}},
		{"the smaller", Limits{Connections: 5}, Limits{Connections: 6}, Limits{Connections: 5}},
		{"below the default", Limits{Connections: 5}, Limits{}, Limits{Connections: 5}},
		{"above the default", Limits{Connections: 1 << 20}, Limits{}, Limits{Connections: 16384}},
		{"bytes above the default", Limits{BytesPerFlow: 1 << 60}, Limits{}, Limits{BytesPerFlow: 1 << 40}},
		{"both above the default", Limits{HeadBytes: 1 << 20}, Limits{HeadBytes: 1 << 19}, Limits{HeadBytes: 1 << 19}},
		{"no default", Limits{RatePerClient: 1e6}, Limits{}, Limits{RatePerClient: 1e6}},
		{"fields apart", Limits{HelloBytes: 1, IdleTimeoutSeconds: 9}, Limits{HelloBytes: 2, MaxDurationSeconds: 3}, Limits{HelloBytes: 1, IdleTimeoutSeconds: 9, MaxDurationSeconds: 3}},
	} {
		if got := tt.a.stricter(tt.b); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		if got := tt.b.stricter(tt.a); got != tt.want {
			t.Errorf("%s, the other way: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
