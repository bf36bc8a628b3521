//go:build system

package receipt

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"egressd/internal/run/receipt/canonical"
)

// Another implementation of the format, on another platform's JSON, hashes and
// Ed25519: it must find every hash and signature of a bundle right.
const nodeVerifier = `
const { createHash, verify } = require("node:crypto");
const text = require("node:fs").readFileSync(process.argv[2], "utf8");
const canonical = (v) =>
  Array.isArray(v) ? "[" + v.map(canonical).join(",") + "]"
  : v && typeof v === "object" ? "{" + Object.keys(v).sort().map((k) => JSON.stringify(k) + ":" + canonical(v[k])).join(",") + "}"
  : JSON.stringify(v);
const sha = (s) => createHash("sha256").update(s, "utf8").digest("hex");
const b = JSON.parse(text);
if (process.argv[3] === "print") { process.stdout.write(canonical(b)); process.exit(0); }
const check = (is, what) => { if (!is) { console.log("wrong: " + what); process.exitCode = 1; } };
const unsigned = (o) => { const { signatures, ...rest } = o; return sha(canonical(rest)); };
const pems = { plane: b.keys.planePublicKeyPem, runner: b.keys.runnerPublicKeyPem };
for (const name of ["contract", "receipt"])
  for (const s of b[name].signatures) {
    check(s.keyId === "ed25519:" + sha(pems[s.signer].trim()).slice(0, 16), name + " key " + s.signer);
    check(verify(null, Buffer.from(unsigned(b[name]), "utf8"), pems[s.signer], Buffer.from(s.sig, "base64")), name + " signature " + s.signer);
  }
let prev = unsigned(b.contract);
check(b.receipt.contractHash === prev, "contract hash");
b.events.forEach((e, i) => {
  check(e.seq === i && e.prev === prev, "chain " + i);
  prev = sha(canonical({ seq: e.seq, ts: e.ts, prev: e.prev, event: e.event }));
  check(e.hash === prev, "hash " + i);
});
check(b.receipt.eventsHead === prev, "head");
check(b.receipt.workspaceIn.manifestHash === sha(canonical(b.contract.workspace)), "manifest");
console.log("verified");
`

func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node")
	}
	dir := t.TempDir()
	run := func(content []byte, args ...string) string {
		t.Helper()
		name := filepath.Join(dir, "in.json")
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), node, append([]string{"-e", nodeVerifier, "-", name}, args...)...)
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // what it prints tells
		return out.String()
	}
	b := text(t, good(t, testKey(t, 1), testKey(t, 2)))
	if got := run(b); strings.TrimSpace(got) != "verified" {
		t.Errorf("node says %s", got)
	}
	if got := run(bytes.Replace(b, []byte("evil.test"), []byte("good.test"), 1)); !strings.Contains(got, "wrong: ") {
		t.Errorf("node says %s of a changed bundle", got)
	}
	// Numbers and strings as ECMAScript writes them.
	odd := `{"n":[1e21,1e-7,0.1,-0,5e-324,1.7976931348623157e308,4.35,123456789012345678],"s":"\u0000\u001f\u007f\u2028<>&\ud83d\ude00\ud83d","\ufb33":1,"\ud83d\ude00":2,"é":3}`
	v, err := canonical.Parse([]byte(odd))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := canonical.Encode(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	if got := run([]byte(odd), "print"); got != string(ours) {
		t.Errorf("node writes %s\nand we %s", got, ours)
	}
}
