package handover

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"egressd/event"
	"egressd/policy"
)

// knock connects to d and reports the raw link.
func (d *daemon) knock(t *testing.T) *link {
	t.Helper()
	c, err := net.Dial("unix", d.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &link{c: c.(*net.UnixConn), in: c}
}

func (l *link) refusal(t *testing.T) string {
	t.Helper()
	var no *RefusedError
	if err := l.expect(kindReady, maxReply, new(acceptance)); !errors.As(err, &no) {
		t.Fatalf("no refusal: %v", err)
	}
	return no.Why
}

func whole(change func(map[string]any)) []byte {
	b, err := json.Marshal(hello{Protocol: Protocol, Version: "v0", Session: "one", Isolation: "netns", ArgvHash: strings.Repeat("0", 64)})
	if err != nil {
		panic(err)
	}
	m := make(map[string]any)
	if err := json.Unmarshal(b, &m); err != nil {
		panic(err)
	}
	change(m)
	if b, err = json.Marshal(m); err != nil {
		panic(err)
	}
	return b
}

func TestHellos(t *testing.T) {
	d := serve(t, doc("a.test"), nil)
	for _, tt := range []struct {
		name string
		kind kind
		body []byte
		want string
	}{
		{"another release", kindHello, whole(func(m map[string]any) { m["protocol"] = Protocol + 1; m["brand_new"] = true }), "use launch and egressd of one release"},
		{"none", kindHello, whole(func(m map[string]any) { delete(m, "protocol") }), "speaks 0"},
		{"a field of nobody's", kindHello, whole(func(m map[string]any) { m["extra"] = 1 }), "extra"},
		{"two values", kindHello, append(whole(func(map[string]any) {}), '{', '}'), "does not speak"},
		{"no JSON", kindHello, []byte("GET / HTTP/1.1\r\n\r\n"), "does not speak"},
		{"another frame", kindDoors, whole(func(map[string]any) {}), "does not speak"},
		{"control bytes in the version", kindHello, whole(func(m map[string]any) { m["protocol"] = 7; m["version"] = "\x1b[31m" + strings.Repeat("v", 100) }), "?[31mvvv"},
		{"a document with a bad key", kindHello, whole(func(m map[string]any) { m["documents"] = []any{map[string]any{"Alow": nil}} }), "Alow"},
		{"a document that is null", kindHello, whole(func(m map[string]any) { m["documents"] = []any{nil}; m["session"] = "" }), "word"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := d.knock(t)
			if err := l.send(tt.kind, tt.body); err != nil {
				t.Fatal(err)
			}
			if why := l.refusal(t); !strings.Contains(why, tt.want) || strings.ContainsFunc(why, func(r rune) bool { return r < ' ' }) {
				t.Errorf("refused because %q, want %q", why, tt.want)
			}
		})
	}
	if len(d.Gates()) != 0 {
		t.Error("a refused session counts")
	}
}

// An announced length costs nothing before the bytes arrive.
func TestAnnouncedLength(t *testing.T) {
	d := serve(t, doc("a.test"), nil)
	l := d.knock(t)
	head := binary.BigEndian.AppendUint32(nil, 1<<31)
	if _, err := l.c.Write(append(head, byte(kindHello))); err != nil {
		t.Fatal(err)
	}
	if why := l.refusal(t); !strings.Contains(why, "longer than") {
		t.Error(why)
	}
}

// Connections that say nothing keep nobody out but for their time.
func TestSilentLaunchers(t *testing.T) {
	d := serve(t, doc("a.test"), nil)
	for range maxSettingUpUser {
		d.knock(t)
	}
	start := time.Now()
	d.join(t, offer("one"))
	if took := time.Since(start); took > helloTimeout+5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A daemon that speaks nonsense is an error and no wait.
func TestForeignDaemon(t *testing.T) {
	for name, answer := range map[string][]byte{
		"HTTP":         []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"nothing":      nil,
		"another word": frame(kindEnd, []byte("{}")),
		"half a frame": frame(kindReady, []byte(`{"version":"x"}`))[:8],
		"a field more": frame(kindReady, []byte(`{"version":"x","more":1}`)),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ln, err := net.Listen("unix", filepath.Join(dir, "s"))
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go func() {
				c, err := ln.Accept()
				if err == nil {
					_, _ = c.Write(answer)
					c.Close()
				}
			}()
			if r, err := Dial(t.Context(), filepath.Join(dir, "s"), offer("one")); err == nil {
				r.Close()
				t.Error("it was taken for egressd")
			}
		})
	}
}

func TestStream(t *testing.T) {
	allowed := event.Event{Body: &event.Connection{Verdict: event.Verdict{Decision: event.Allowed}}}
	blocked := event.Event{Body: new(event.Connection)}
	synctest.Test(t, func(t *testing.T) {
		s := newStream(time.Second)
		start := time.Now()
		if err := s.Emit(allowed); !errors.Is(err, errNoAck) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := s.Emit(blocked); err != nil {
			t.Error(err)
		}
		got := make(chan error, 2)
		go func() { got <- s.Emit(allowed) }()
		synctest.Wait()
		s.answered(3, true)
		if err := <-got; err != nil {
			t.Error(err)
		}
		go func() { got <- s.Emit(allowed) }()
		synctest.Wait()
		s.answered(4, false)
		if err := <-got; !errors.Is(err, errUnkept) {
			t.Error(err)
		}
		s.answered(99, true) // nobody's
		for s.Emit(event.Event{Body: &event.Close{Error: strings.Repeat("x", 1000)}}) == nil {
		}
		if err := s.Emit(blocked); err == nil && len(s.queue) > maxQueue {
			t.Error("the queue has no bound")
		}
		go func() { got <- s.Emit(allowed) }()
		go func() { frames, _ := s.take(nil); _ = frames; go func() { got <- s.Emit(allowed) }() }()
		synctest.Wait()
		s.hangUp()
		for range 2 {
			if err := <-got; err == nil {
				t.Error("an event that nobody kept")
			}
		}
		if err := s.Emit(allowed); !errors.Is(err, errGone) {
			t.Errorf("after it hung up: %v", err)
		}
		if err := s.Emit(blocked); err != nil {
			t.Errorf("the last events: %v", err)
		}
		if lost := s.close(); lost == 0 {
			t.Error("what found no room is not counted")
		}
		if err := s.Emit(blocked); !errors.Is(err, errGone) {
			t.Errorf("closed: %v", err)
		}
		if frames, more := s.take(nil); !more || len(frames) == 0 {
			t.Error("what was queued is lost")
		}
		if _, more := s.take(nil); more {
			t.Error("there is no end")
		}
	})
}

// The value of a secret is in no text of ours.
func TestSecretIsSilent(t *testing.T) {
	s := Secret{Env: "A", Placeholder: "p", Value: "hunter2"}
	for _, text := range []string{s.String(), s.GoString()} {
		if strings.Contains(text, "hunter2") {
			t.Error(text)
		}
	}
}

// What is in a hello is part of the protocol: whoever changes it raises
// Protocol.
func TestShapeOfHello(t *testing.T) {
	var fields []string
	var walk func(prefix string, typ reflect.Type)
	walk = func(prefix string, typ reflect.Type) {
		switch {
		case typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice:
			walk(prefix, typ.Elem())
		case typ.Kind() == reflect.Struct && !strings.HasSuffix(typ.PkgPath(), "netip") && typ != reflect.TypeFor[policy.Host]():
			for i := range typ.NumField() {
				if f := typ.Field(i); f.IsExported() && f.Tag.Get("json") != "-" { // what is not does not travel
					walk(prefix+"."+typ.Field(i).Name, typ.Field(i).Type)
				}
			}
		default:
			fields = append(fields, prefix)
		}
	}
	walk("hello", reflect.TypeFor[hello]())
	slices.Sort(fields)
	text := fmt.Sprintf("protocol %d\n%s\n", Protocol, strings.Join(fields, "\n"))
	golden, err := os.ReadFile("testdata/hello.golden")
	if err != nil {
		t.Fatal(err)
	}
	if text != string(golden) {
		t.Errorf("raise Protocol, and write this to testdata/hello.golden:\n%s", text)
	}
}

func FuzzHello(f *testing.F) {
	f.Add(whole(func(map[string]any) {}))
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := parseHello(body, "v")
		if err != nil {
			return
		}
		if !isID(h.Session) || h.Isolation != "netns" {
			t.Errorf("%+v", h)
		}
		if _, err := policy.Compile(h.Documents...); err != nil {
			return
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add(frame(kindAck, numbered(1, []byte{1})))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &link{in: bytes.NewReader(data)}
		for {
			k, body, err := l.receive(1000)
			if err != nil {
				if errors.Is(err, io.EOF) && len(data) == 0 {
					return
				}
				return
			}
			if len(body) > 1000 {
				t.Fatal("too long")
			}
			_ = decodeFrame(kindReady, k, body, new(acceptance))
		}
	})
}
