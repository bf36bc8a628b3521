package proxy

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestSocks5Messages sends what clients send, and what they must not.
func TestSocks5Messages(t *testing.T) {
	name := func(s string) string { return "\x03" + string(rune(len(s))) + s + "\x00\x16" }
	tests := []struct {
		name   string
		sent   string // after the greeting
		method string // the greeting, "" for no authentication
		reply  string // reply bytes, hex
		reason string
	}{
		{"name", "\x05\x01\x00" + name("a.example"), "", "0500", "allowed"},
		{"password is taken and ignored", "\x01\x04user\x06secret\x05\x01\x00" + name("a.example"), "\x05\x01\x02", "01000500", "allowed"},
		{"address", "\x05\x01\x00\x01\x5d\xb8\xd8\x22\x00\x16", "", "0500", "allowed"},
		{"address spelled as a name", "\x05\x01\x00" + name("93.184.216.34"), "", "0500", "allowed"},
		{"IPv6 metadata", "\x05\x01\x00\x04\xfd\x00\x0e\xc2" + strings.Repeat("\x00", 10) + "\x02\x54\x00\x16", "", "0502", "destination_ip_prohibited"},
		{"mapped metadata", "\x05\x01\x00\x04" + strings.Repeat("\x00", 10) + "\xff\xff\xa9\xfe\xa9\xfe\x00\x16", "", "0502", "destination_ip_prohibited"},
		{"metadata spelled as a name", "\x05\x01\x00" + name("169.254.169.254"), "", "0502", "destination_ip_prohibited"},
		{"octal", "\x05\x01\x00" + name("0251.0376.0251.0376"), "", "0501", "http_request_error"},
		{"one number", "\x05\x01\x00" + name("2852039166"), "", "0501", "http_request_error"},
		{"NUL in the name", "\x05\x01\x00" + name("a.example\x00.evil"), "", "0501", "http_request_error"},
		{"brackets", "\x05\x01\x00" + name("[a.example]"), "", "0501", "http_request_error"},
		{"port 0", "\x05\x01\x00\x03\x09a.example\x00\x00", "", "0501", "http_request_error"},
		{"BIND", "\x05\x02\x00" + name("a.example"), "", "0507", "protocol_not_carried"},
		{"UDP ASSOCIATE", "\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", "", "0507", "protocol_not_carried"},
		{"no method of ours", "", "\x05\x01\x01", "05ff", "http_request_error"},
		{"unlisted", "\x05\x01\x00" + name("evil.example"), "", "0502", "host_not_listed"},
	}
	to := serveOrigin(t, echo)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t, "a.example:22", "93.184.216.34:22").start()
			g.name("a.example", 22, to)
			c := dialGate(g, g.explicitAddr)
			greeting, chosen := tt.method, "0502"
			if greeting == "" {
				greeting, chosen = "\x05\x01\x00", "0500"
			} else if strings.HasPrefix(tt.reply, "05ff") {
				chosen = ""
			}
			_, _ = io.WriteString(c, greeting+tt.sent)
			want := chosen + tt.reply
			got := make([]byte, len(want)/2)
			if _, err := io.ReadFull(c, got); err != nil || fmt.Sprintf("%x", got) != want {
				t.Errorf("replies %x, %v; want %s", got, err, want)
			}
			c.Close()
			d := g.decision(1)
			if d.Reason != tt.reason || strings.Contains(fmt.Sprintf("%+v", d), "secret") {
				t.Errorf("%+v, want %s", d, tt.reason)
			}
			if tt.reason != "allowed" && g.dials.Load()+g.lookups.Load() != 0 {
				t.Error("a denied request was looked up or dialled")
			}
		})
	}
}

func TestSocks4Address(t *testing.T) {
	g := newGate(t, "93.184.216.34:22").start()
	g.leads("93.184.216.34:22", serveOrigin(t, echo))
	c := dialGate(g, g.explicitAddr)
	_, _ = io.WriteString(c, "\x04\x01\x00\x16\x5d\xb8\xd8\x22me\x00")
	if reply := make([]byte, 8); true {
		if _, err := io.ReadFull(c, reply); err != nil || reply[0] != 0 || reply[1] != 90 {
			t.Errorf("%v, %v", reply, err)
		}
	}
	if !pingPong(c) {
		t.Error("no answer")
	}
	if d := g.decision(1); d.Door != "socks4" || d.Host != "93.184.216.34" {
		t.Errorf("%+v", d)
	}
}
