package pod

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/netns/netlink"
	"egressd/netns/nft"
)

var update = flag.Bool("update", false, "rewrite testdata")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant %s:\n%s", got, file, want)
	}
}

var variants = []struct {
	file  string
	rules Rules
}{
	{"usual.nft", Rules{Users: []uint32{testUser}, TransparentPort: testTransparent, DNSPort: testDNS}},
	{"all.nft", Rules{Users: []uint32{testUser, 1337}, TransparentPort: 15000, DNSPort: 15053, Protected: []uint16{testAdmin, 9090}}},
	{"mark.nft", Rules{Mark: testMark, TransparentPort: testTransparent}},
}

func TestText(t *testing.T) {
	for _, v := range variants {
		golden(t, v.file, v.rules.Text([]string{"eth0"}))
	}
}

func runNFT(t testing.TB, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("needs the nft program as an oracle")
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("nft %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func load(t testing.TB, script string) {
	t.Helper()
	file := t.TempDir() + "/script.nft"
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	runNFT(t, "-f", file)
}

// The nft program is the oracle: what Install sends is what Text says, and
// Text loaded by nft is what Install takes for its own.
func TestTextAgainstNFT(t *testing.T) {
	for _, v := range variants {
		t.Run(v.file, func(t *testing.T) {
			newWorld(t)
			want := ""
			for _, table := range v.rules.tables([]string{"eth0"}) {
				want += table.String()
			}
			install(t, v.rules)
			if got := runNFT(t, "list", "ruleset"); got != want {
				t.Errorf("installed:\n%s\nwant:\n%s", got, want)
			}
			runNFT(t, "flush", "ruleset")
			for range 2 { // the script replaces what is there
				load(t, v.rules.Text([]string{"eth0"}))
			}
			if got := runNFT(t, "list", "ruleset"); got != want {
				t.Errorf("loaded:\n%s\nwant:\n%s", got, want)
			}
			if err := v.rules.Verify(); err != nil {
				t.Errorf("loaded rules are not recognised: %v", err)
			}
		})
	}
}

func TestInstallTwice(t *testing.T) {
	newWorld(t)
	first := install(t, testRules())
	if !first.Changed || first.Replaced || !slices.Equal(first.Devices, []string{"eth0"}) {
		t.Errorf("first: %+v", first)
	}
	if second := install(t, testRules()); second.Changed {
		t.Errorf("second: %+v", second)
	}
	other := testRules()
	other.Protected = nil
	if third := install(t, other); !third.Changed || !third.Replaced {
		t.Errorf("other rules: %+v", third)
	}
	if err := testRules().Verify(); !errors.Is(err, nft.ErrDiffers) {
		t.Errorf("the former rules: %v", err)
	}
	if was, err := Remove(); err != nil || !was {
		t.Errorf("remove: %v, %v", was, err)
	}
	if was, err := Remove(); err != nil || was {
		t.Errorf("remove again: %v, %v", was, err)
	}
	if err := other.Verify(); !errors.Is(err, nft.ErrDiffers) {
		t.Errorf("after remove: %v", err)
	}
}

// Whatever somebody changes in our tables is noticed, and put right.
func TestVerifyNotices(t *testing.T) {
	for _, change := range []string{
		"flush ruleset",
		"delete table netdev egressd",
		"add table inet egressd { flags dormant; }",
		"add rule inet egressd leave accept",
		"insert rule inet egressd wall accept",
		"flush chain inet egressd capture",
		"add chain inet egressd more",
		"chain inet egressd leave { policy accept; }",
		"flush chain inet egressd refuse; add rule inet egressd refuse ct state invalid drop; add rule inet egressd refuse meta l4proto tcp reject with tcp reset; add rule inet egressd refuse accept",
		"flush chain inet egressd forward; delete chain inet egressd forward; add chain inet egressd forward",
	} {
		t.Run(change, func(t *testing.T) {
			newWorld(t)
			install(t, testRules())
			load(t, change)
			if r := install(t, testRules()); !r.Changed {
				t.Error("not noticed")
			}
			if r := install(t, testRules()); r.Changed {
				t.Error("not put right")
			}
		})
	}
}

// A rule that the kernel can't take: nothing of the transaction stays, and
// the error names the rule.
func TestAllOrNothing(t *testing.T) {
	newWorld(t)
	install(t, testRules())
	c, err := netlink.Dial(unix.NETLINK_NETFILTER)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tables := testRules().tables(nil)
	last := &tables[0].Chains[len(tables[0].Chains)-1]
	last.Rules = append(slices.Clone(last.Rules), nft.Rule{nft.Goto("nowhere")})
	if err := nft.Replace(c, tables...); err == nil || !strings.Contains(err.Error(), `"goto nowhere"`) {
		t.Errorf("got %v", err)
	}
	if err := testRules().Verify(); err != nil {
		t.Errorf("the former rules: %v", err)
	}
}

// Other tables stay as they are.
func TestOthersAreLeftAlone(t *testing.T) {
	newWorld(t)
	load(t, `table ip nat {
	chain DOCKER_OUTPUT {
		ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.11:41234
	}
	chain OUTPUT {
		type nat hook output priority -100; policy accept;
		ip daddr 127.0.0.11 jump DOCKER_OUTPUT
	}
}
table inet filter {
	chain output {
		type filter hook output priority filter; policy accept;
	}
}
`)
	before := runNFT(t, "list", "ruleset")
	install(t, testRules())
	other := testRules()
	other.DNSPort = 0
	install(t, other)
	if _, err := Remove(); err != nil {
		t.Fatal(err)
	}
	if after := runNFT(t, "list", "ruleset"); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestValidate(t *testing.T) {
	good := testRules()
	for _, c := range []struct {
		name   string
		change func(*Rules)
		want   string // "": it is valid
	}{
		{"usual", func(*Rules) {}, ""},
		{"no DNS", func(r *Rules) { r.DNSPort = 0 }, ""},
		{"root", func(r *Rules) { r.Users, r.Mark = []uint32{0}, 0 }, ""},
		{"zero", func(r *Rules) { *r = Rules{} }, "exempt"},
		{"both", func(r *Rules) { r.Users, r.Mark = []uint32{1}, 1 }, "either"},
		{"nobody", func(r *Rules) { r.Users, r.Mark = []uint32{65534}, 0 }, "65534"},
		{"no user", func(r *Rules) { r.Users, r.Mark = []uint32{1<<32 - 1}, 0 }, "4294967295"},
		{"no port", func(r *Rules) { r.TransparentPort = 0 }, "port"},
		{"port 53", func(r *Rules) { r.TransparentPort = 53 }, "53"},
		{"DNS at 53", func(r *Rules) { r.DNSPort = 53 }, "53"},
		{"one port", func(r *Rules) { r.DNSPort = r.TransparentPort }, "both"},
		{"protected door", func(r *Rules) { r.Protected = []uint16{testDNS} }, "door"},
		{"protected DNS", func(r *Rules) { r.Protected = []uint16{53} }, "53"},
		{"protected 0", func(r *Rules) { r.Protected = []uint16{0} }, "protected"},
		{"many", func(r *Rules) { r.Protected = make([]uint16, 65) }, "at most"},
	} {
		r := good
		c.change(&r)
		err := r.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want == "" {
			continue
		}
		if _, err := r.Install(); err == nil {
			t.Errorf("%s: installed", c.name)
		}
	}
}

func TestWithoutCapability(t *testing.T) {
	newWorld(t)
	if err := keepOnly(0); err != nil {
		t.Fatal(err)
	}
	if _, err := testRules().Install(); !errors.Is(err, ErrNotPermitted) {
		t.Errorf("install: %v", err)
	}
	if _, err := Remove(); !errors.Is(err, ErrNotPermitted) {
		t.Errorf("remove: %v", err)
	}
}

// A kernel without nfnetlink, made by a system-call filter (classic BPF) of
// this thread, which dies with the test.
func TestWithoutNFTables(t *testing.T) {
	newWorld(t)
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("written for little-endian machines")
	}
	const number, args = 0, 16 // struct seccomp_data; low halves first
	word := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	code := []unix.SockFilter{
		word(number), unless(unix.SYS_SOCKET, 5),
		word(args), unless(unix.AF_NETLINK, 3),
		word(args + 2*8), unless(unix.NETLINK_NETFILTER, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		t.Skipf("no system-call filter: %v", e)
	}
	if _, err := testRules().Install(); !errors.Is(err, ErrNotSupported) {
		t.Errorf("got %v", err)
	}
}

// The machine's own network is not captured by mistake.
func TestMachine(t *testing.T) {
	if !asRoot() {
		newWorld(t)
		if wide, err := machineWide(); err != nil || wide {
			t.Errorf("a new namespace is the machine's: %v, %v", wide, err)
		}
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	wide, err := machineWide()
	if err != nil || !wide {
		t.Skipf("the suite does not run in the machine's own namespace: %v, %v", wide, err)
	}
	if _, err := testRules().Install(); !errors.Is(err, ErrMachine) {
		t.Fatalf("got %v", err)
	}
}
