// Package inside is an egressd of ours in a hosted machine, beside the program:
// what it is started with, and what is believed of what it prints.
//
//	g, err := inside.Open("/usr/bin/egressd", policy)
//	args := inside.Args(policyFile, bundleFile)
//	out := inside.NewOutput(sink, event.Event{Session: id})
//	... start it there, with g.Policy() in policyFile, and pass what it prints to out.Write ...
//	proxy := <-out.Ready() // env = sandbox.ProxyEnv(env, proxy)
//
// Programs find it by their proxy variables.
//
// Threat: the program there goes around it, ends it, or writes to the record in its
// name, since both are one user's in one machine -> nothing rests on it: the
// service's firewall, which the program cannot reach, is told all that it can hold,
// and every event of a run with such a gate says so in its isolation. Left over:
// what only this gate holds (ports, methods, paths) holds for programs that use
// their proxy variables.
package inside

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"egressd/policy"
)

// Isolation names the tier, with a gate inside, in events.
const Isolation = "vercel-sandbox+egressd"

// maxBinary bounds the program that is sent, in bytes.
const maxBinary = 256 << 20

// Gate is an egressd for Linux and the rules that it gets. It holds no open file.
type Gate struct {
	path  string
	size  int64
	arch  string // as the service spells it
	rules rules
	opens bool
}

// rules is a policy file.
type rules struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny,omitempty"`
	Audit bool     `json:"audit,omitempty"`
}

// synthetic holds the addresses that a firewall may give names in place of their
// own, and that no other machine has (RFC 2544). The firewall judges what goes there.
const synthetic = "198.18.0.0/15:*"

// Open reads what kind of program path is: an executable for Linux that needs no
// libraries. The gate gets the rules of p and nothing else of it: secrets stay with
// the service.
func Open(path string, p *policy.Policy) (*Gate, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBinary {
		return nil, fmt.Errorf("%s: not a file of at most %d MiB", path, maxBinary>>20)
	}
	arch, err := architecture(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: name the egressd of a Linux release", path, err)
	}
	g := &Gate{path: path, size: info.Size(), arch: arch}
	g.rules.Audit = p.Audit()
	for r := range p.Each(false) {
		g.rules.Allow = append(g.rules.Allow, r.Text)
		g.opens = g.opens || r.Reach().Requests
	}
	g.rules.Allow = append(g.rules.Allow, synthetic)
	for r := range p.Each(true) {
		g.rules.Deny = append(g.rules.Deny, r.Text)
	}
	return g, nil
}

// architecture reads for which processor f is, as the service spells it. It reads the
// headers itself: elf.NewFile links a reader of debug information, 200 kB of launch.
func architecture(f io.ReaderAt) (string, error) {
	var h elf.Header64
	in := io.NewSectionReader(f, 0, 1<<62)
	if err := binary.Read(in, binary.LittleEndian, &h); err != nil || string(h.Ident[:elf.EI_CLASS]) != elf.ELFMAG {
		return "", errors.New("not a program for Linux")
	}
	machine := elf.Machine(h.Machine)
	known := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[machine]
	if known == "" || elf.Class(h.Ident[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(h.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return "", fmt.Errorf("a program for another processor (%s)", machine)
	}
	for i := range int64(h.Phnum) {
		var p elf.Prog64
		_, err := in.Seek(int64(h.Phoff)+i*int64(h.Phentsize), io.SeekStart) //nolint:gosec // what is out of range is an error
		if err == nil {
			err = binary.Read(in, binary.LittleEndian, &p)
		}
		if err != nil {
			return "", errors.New("not a program for Linux")
		}
		if elf.ProgType(p.Type) == elf.PT_INTERP {
			return "", errors.New("a program that needs libraries (build it with CGO_ENABLED=0)")
		}
	}
	return known, nil
}

// Fits reports why the gate cannot run on a machine of that architecture. One that
// does not say its own is amd64.
func (g *Gate) Fits(arch string) error {
	if arch == "" {
		arch = "amd64"
	}
	if arch != g.arch {
		return fmt.Errorf("%s is for %s, and the sandbox is %s", g.path, g.arch, arch)
	}
	return nil
}

// Program opens the file to send, which has Size bytes. The caller closes it.
func (g *Gate) Program() (io.ReadCloser, error) { return os.Open(g.path) }

// Size is that of the program in bytes.
func (g *Gate) Size() int64 { return g.size }

// Digest reads the program and reports its SHA-256 in hexadecimal.
func (g *Gate) Digest() (string, error) {
	f, err := g.Program()
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// OpensTLS reports whether programs must trust the gate's certificates.
func (g *Gate) OpensTLS() bool { return g.opens }

// Policy is the gate's policy file: JSON, which is YAML as well.
func (g *Gate) Policy() (string, error) {
	text, err := json.Marshal(&g.rules)
	return string(text), err
}

// Args are the arguments of the gate, whose policy and certificates are in these
// files there. It takes a free port of the loopback.
func Args(policyFile, bundleFile string) []string {
	return []string{
		"--policy", policyFile, "--ca-bundle", bundleFile, "--listen", "127.0.0.1:0", "--events", "-",
		"--log-format", "json", "--log-level", "info", "--drain", "1s",
		"--traceable", // it keeps nothing from the program, whose user it shares; the double's machines want it
	}
}
