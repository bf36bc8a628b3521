//go:build linux

package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func basic(token string) string { return base64.StdEncoding.EncodeToString([]byte(token + ":")) }

// ways are how a policy file is changed: by editors, by deployment tools, and by
// Kubernetes. Each puts text into the file that path leads to.
var ways = map[string]func(t *testing.T, path, text string){
	"in place": func(t *testing.T, path, text string) {
		// Truncated first and written in two goes, as slow editors and copies do.
		f := must(os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0))(t)
		defer f.Close()
		half := len(text) / 2
		must(f.WriteString(text[:half]))(t)
		must(f.WriteString(text[half:]))(t)
	},
	"rename": func(t *testing.T, path, text string) {
		next := path + ".tmp"
		check(t, os.WriteFile(next, []byte(text), 0o600))
		check(t, os.Rename(next, path))
	},
	"delete and write": func(t *testing.T, path, text string) {
		check(t, os.Remove(path))
		check(t, os.WriteFile(path, []byte(text), 0o600))
	},
	"backup and write": func(t *testing.T, path, text string) { // vim with backupcopy=no
		check(t, os.Rename(path, path+"~"))
		check(t, os.WriteFile(path, []byte(text), 0o600))
	},
	"ConfigMap": configMap,
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// configMap does what the kubelet does: path is DIR/name -> ..data/name, and
// DIR/..data -> ..TIME, which is swapped by a rename.
func configMap(t *testing.T, path, text string) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	fresh := must(os.MkdirTemp(dir, "..2026_"))(t)
	check(t, os.WriteFile(filepath.Join(fresh, name), []byte(text), 0o600))
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	check(t, os.Symlink(filepath.Base(fresh), filepath.Join(dir, "..data_tmp")))
	check(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeSymlink {
		_ = os.Remove(path)
		check(t, os.Symlink("..data/"+name, path))
	}
	if old != "" {
		check(t, os.RemoveAll(filepath.Join(dir, old)))
	}
}

// load sends requests through tunnels that the policy allows all the time, and
// counts those that failed.
type load struct {
	wg             sync.WaitGroup
	stop           chan struct{}
	done, failures atomic.Int64
	first          atomic.Value // the first failure
}

func startLoad(t *testing.T, proxy, target string) *load {
	l := &load{stop: make(chan struct{})}
	for range 4 {
		l.wg.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				if err := once(proxy, target); err != nil {
					l.failures.Add(1)
					l.first.CompareAndSwap(nil, err.Error())
				}
				l.done.Add(1)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

func once(proxy, target string) error {
	c, err := connect(proxy, target, "")
	if err != nil {
		return err
	}
	defer c.Close()
	return c.ping()
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.wg.Wait()
}

// Every way of changing the file, under load: allowed flows never fail, a long
// tunnel lives on, a tunnel that the new policy denies is closed within a second.
func TestReloadUnderLoad(t *testing.T) {
	kept, gone := echo(t), echo(t)
	both, one := policyFor("app.test", kept, gone), policyFor("app.test", kept)
	path := filepath.Join(t.TempDir(), "policy.yaml")
	configMap(t, path, both)
	p := start(t, "--policy", path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	proxy := p.addr("proxy")
	l := startLoad(t, proxy, "app.test:"+kept)
	long := must(connect(proxy, "app.test:"+kept, ""))(t)
	defer long.Close()
	changes := map[string]func(t *testing.T, path, text string){"SIGHUP": nil}
	for name, change := range ways {
		changes[name] = change
	}
	for name, change := range changes {
		if name == "ConfigMap" || name == "SIGHUP" {
			_ = os.Remove(path)
			configMap(t, path, both)
		} else {
			ways["rename"](t, path, both)
		}
		p.signal(syscall.SIGHUP)
		eventually(t, name+": the port opens", func() bool { return once(proxy, "app.test:"+gone) == nil })
		denied := must(connect(proxy, "app.test:"+gone, ""))(t)
		check(t, denied.ping())
		begin := time.Now()
		if change == nil {
			configMap(t, path, one)
			p.signal(syscall.SIGHUP)
		} else {
			change(t, path, one)
		}
		if _, closed := denied.closedWithin(patience); !closed {
			t.Fatalf("%s: the denied tunnel lives on", name)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s: the denied tunnel was closed after %v", name, took)
		}
		if _, err := connect(proxy, "app.test:"+gone, ""); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s: a new connection: %v", name, err)
		}
		if err := long.ping(); err != nil {
			t.Fatalf("%s: the long tunnel: %v", name, err)
		}
		denied.Close()
	}
	l.end()
	if l.failures.Load() > 0 || l.done.Load() == 0 {
		t.Errorf("%d of %d allowed requests failed: %v", l.failures.Load(), l.done.Load(), l.first.Load())
	}
	p.wait("msg=\"policy change\"", "removed=", "app.test:"+gone)
	p.events.wait(t, `"type":"policy.loaded"`, `"removed":1`)
}

// A file that cannot be loaded changes nothing, and everybody hears of it.
func TestBadPolicyStays(t *testing.T) {
	port := echo(t)
	good := policyFor("app.test", port)
	path := write(t, "policy.yaml", good)
	p := start(t, "--policy", path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	proxy, admin := p.addr("proxy"), p.addr("admin")
	for _, bad := range []string{"allow: [", "allow:\n  - a..b\n", "alow:\n  - x.example\n", "allow: [x.example]\nsecrets:\n  - env: NOT_SET_ANYWHERE\n    header: Authorization\n    hosts: [x.example]\n"} {
		ways["rename"](t, path, bad)
		before := p.events.count(`"type":"policy.rejected"`)
		p.signal(syscall.SIGHUP)
		eventually(t, "policy.rejected", func() bool { return p.events.count(`"type":"policy.rejected"`) > before })
		if err := once(proxy, "app.test:"+port); err != nil {
			t.Errorf("%q: the policy before is not in force: %v", bad, err)
		}
		if code, body := get(t, admin, "/readyz"); code != 200 {
			t.Errorf("%q: not ready: %d %s", bad, code, body)
		}
		if _, body := get(t, admin, "/metrics"); !strings.Contains(body, "reject") {
			t.Errorf("%q: the metrics do not tell:\n%s", bad, body)
		}
	}
	p.wait("level=ERROR", "the policy was rejected", "policy.yaml:")
	check(t, os.Remove(path))
	p.signal(syscall.SIGHUP)
	p.wait("level=ERROR", "the policy was rejected", "no such file")
	check(t, once(proxy, "app.test:"+port))
	ways["rename"](t, path, good)
	p.signal(syscall.SIGHUP)
	p.wait("level=INFO", "the policy is in force, unchanged")
	ways["rename"](t, path, policyFor("app.test", port)+"deny:\n  - other.example\n")
	eventually(t, "policy.loaded", func() bool { return p.events.count(`"type":"policy.loaded"`, `"added":1`) > 0 })
}

// Requests that carry no flow at the moment of a reload are judged by the new
// policy; a denied CONNECT never gets through meanwhile.
func TestReloadNeverOpens(t *testing.T) {
	port := echo(t)
	path := write(t, "policy.yaml", policyFor("other.test", port))
	p := start(t, "--policy", path, "--listen", "127.0.0.1:0")
	proxy := p.addr("proxy")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var through atomic.Int64
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if once(proxy, net.JoinHostPort("denied.test", port)) == nil {
				through.Add(1)
			}
		}
	})
	for i := range 5 {
		text := policyFor("other.test", port)
		if i%2 == 0 {
			text = "allow:\n"
		}
		mark := fmt.Sprintf("step%d.test", i)
		ways["rename"](t, path, text+"  - "+mark+"\n")
		p.wait("policy change", "added=", mark)
	}
	close(stop)
	wg.Wait()
	if n := through.Load(); n > 0 {
		t.Errorf("%d denied connections got through", n)
	}
}

// A flow that is being judged or dialled in the moment of a reload does not slip
// through: a second later nothing is open that the new policy denies.
func TestReloadCatchesFlowsOnTheirWay(t *testing.T) {
	port := echo(t)
	allowed, denied := policyFor("app.test", port), "allow:\n  - other.test\n"
	path := write(t, "policy.yaml", allowed)
	p := start(t, "--policy", path, "--listen", "127.0.0.1:0")
	proxy := p.addr("proxy")
	for round := range 5 {
		var mu sync.Mutex
		var open []*tunnel
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if c, err := connect(proxy, "app.test:"+port, ""); err == nil {
						_, _ = c.Write([]byte("ping\n"))
						mu.Lock()
						open = append(open, c)
						mu.Unlock()
					}
				}
			})
		}
		eventually(t, "tunnels are open", func() bool { mu.Lock(); defer mu.Unlock(); return len(open) > 50 })
		ways["rename"](t, path, fmt.Sprintf("%s  - round%d.test\n", denied, round))
		p.wait("policy change", "added=", fmt.Sprintf("round%d.test", round))
		begin := time.Now()
		close(stop)
		wg.Wait()
		for _, c := range open {
			_ = c.SetReadDeadline(begin.Add(time.Second))
			if _, err := io.Copy(io.Discard, c.r); asTimeout(err) {
				t.Errorf("round %d: a tunnel lives on", round)
			}
			c.Close()
		}
		ways["rename"](t, path, fmt.Sprintf("%s  - again%d.test\n", allowed, round))
		p.wait("policy change", "added=", fmt.Sprintf("again%d.test", round))
	}
}
