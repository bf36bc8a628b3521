package room

import (
	"math"
	"reflect"
	"testing"

	"egressd/policy"
)

// Memory bounds the connections, never below 64.
func TestRoom(t *testing.T) {
	for memory, want := range map[int64]int{
		0: 0, 1: least, 32 << 20: least, 64 << 20: 1024, 256 << 20: 7168, 1 << 60: math.MaxInt32,
	} {
		if got := Of(0, memory).Memory; got != want {
			t.Errorf("%d bytes: room for %d connections, want %d", memory, got, want)
		}
	}
}

func TestInForce(t *testing.T) {
	for _, tt := range []struct {
		name               string
		limits             policy.Limits
		room               Room
		connections, share int
		short              string
	}{
		{"nothing named, any room", policy.Limits{}, Room{}, 16384, 8192, ""},
		{"little memory", policy.Limits{}, Room{Memory: 7168}, 7168, 3584, "the limit on memory"},
		{"few descriptors", policy.Limits{}, Room{Files: 9468, Memory: 1 << 20}, 9468, 4734, "the limit on open files"},
		{"both", policy.Limits{}, Room{Files: 9468, Memory: 1000}, 1000, 500, "the limit on memory"},
		{"one of everything", policy.Limits{}, Room{Memory: 1}, 1, 1, "the limit on memory"},
		{"named, and the memory is less", policy.Limits{Connections: 10000}, Room{Memory: 7168}, 10000, 8192, ""},
		{"named, and the descriptors are fewer", policy.Limits{Connections: 10000}, Room{Files: 90}, 90, 90, "the limit on open files"},
		{"a few for all of them", policy.Limits{Connections: 10}, Room{Memory: 5}, 10, 10, ""},
		{"the share alone", policy.Limits{ConnectionsPerClient: 12000}, Room{}, 16384, 12000, ""},
		{"the share alone, and little memory", policy.Limits{ConnectionsPerClient: 12000}, Room{Memory: 7168}, 7168, 7168, "the limit on memory"},
	} {
		in, short := tt.room.InForce(tt.limits)
		if in.Connections != tt.connections || in.ConnectionsPerClient != tt.share || short != tt.short {
			t.Errorf("%s: %d connections, %d of one client, %q; want %d, %d, %q", tt.name, in.Connections, in.ConnectionsPerClient, short, tt.connections, tt.share, tt.short)
		}
	}
	all, _ := Room{}.InForce(policy.Limits{RatePerSecond: 7})
	if all.RatePerClient != 7 {
		t.Errorf("the rate of one client is %v", all.RatePerClient)
	}
	for v, i := reflect.ValueOf(all), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not in force", v.Type().Field(i).Name)
		}
	}
}
