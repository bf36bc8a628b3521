package wire

import (
	"bytes"
	"testing"
)

func TestRetry(t *testing.T) {
	record := func(typ, msg byte, random []byte) []byte {
		b := append([]byte{msg, 0, 0, 70, 3, 3}, random...)
		b = append(b, make([]byte, 36)...)
		return append([]byte{typ, 3, 3, 0, byte(len(b))}, b...)
	}
	other := bytes.Repeat([]byte{0xcf}, randomLen)
	tests := []struct {
		name string
		b    []byte
		want State
	}{
		{"nothing", nil, More},
		{"a retry", record(22, 2, helloRetry), Done},
		{"a ServerHello", record(22, 2, other), Other},
		{"an alert", []byte{21, 3, 3, 0, 2, 2, 40}, Other},
		{"another protocol", []byte("SSH-2.0"), Other},
		{"another message", record(22, 4, helloRetry), Other},
		{"a ServerHello in pieces", []byte{22, 3, 3, 0, 4, 2}, Done},
		{"the first byte", []byte{22}, More},
		{"all but the last byte", record(22, 2, helloRetry)[:RetryBytes-1], More},
		{"all that counts", record(22, 2, helloRetry)[:RetryBytes], Done},
	}
	for _, tt := range tests {
		if got := Retry(tt.b); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	whole := record(22, 2, helloRetry)
	for n := range RetryBytes { // and never a wrong answer on the way
		if got := Retry(whole[:n]); got != More {
			t.Errorf("%d bytes: %v", n, got)
		}
	}
}

func TestRecordLen(t *testing.T) {
	for _, tt := range []struct {
		b         []byte
		n         int
		handshake bool
	}{
		{nil, 0, false},
		{[]byte{22, 3, 3, 1}, 0, false},
		{[]byte{22, 3, 3, 1, 2}, 0x107, true},
		{[]byte{23, 3, 3, 0, 0, 9}, 5, false},
	} {
		if n, h := RecordLen(tt.b); n != tt.n || h != tt.handshake {
			t.Errorf("%x: %d, %v", tt.b, n, h)
		}
	}
}
