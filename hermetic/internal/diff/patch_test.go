package diff_test

import (
	"strings"
	"testing"
)

// The texts were recorded from GNU patch 2.7.6.
func TestPatch(t *testing.T) {
	lines := func(s string) string { return strings.ReplaceAll(s, " ", "\n") + "\n" }
	f := lines("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20")
	five := "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
	for _, c := range []struct {
		what, line, patch string
		file, want, after string
		status            int
	}{
		{what: "plain", line: "patch -p1", patch: five, file: f, want: "patching file f\n", after: strings.Replace(f, "\n5\n", "\nfive\n", 1)},
		{what: "basename", line: "patch", patch: five, file: f, want: "patching file f\n", after: strings.Replace(f, "\n5\n", "\nfive\n", 1)},
		{what: "dry", line: "patch -p1 --dry-run", patch: five, file: f, want: "checking file f\n", after: f},
		{
			what: "offset", line: "patch -p1", patch: five, file: "x\ny\n" + f,
			want: "patching file f\nHunk #1 succeeded at 4 (offset 2 lines).\n", after: "x\ny\n" + strings.Replace(f, "\n5\n", "\nfive\n", 1),
		},
		{
			what: "fuzz", line: "patch -p1", patch: five, file: strings.Replace(f, "\n2\n", "\ntwo\n", 1),
			want: "patching file f\nHunk #1 succeeded at 2 with fuzz 1.\n", after: strings.Replace(strings.Replace(f, "\n2\n", "\ntwo\n", 1), "\n5\n", "\nfive\n", 1),
		},
		{
			what: "failure", line: "patch -p1", patch: five, file: "1\n2\n",
			want: "patching file f\nHunk #1 FAILED at 2.\n1 out of 1 hunk FAILED -- saving rejects to file f.rej\n", after: "1\n2\n", status: 1,
		},
		{
			what: "again", line: "patch -p1", patch: five, file: strings.Replace(f, "\n5\n", "\nfive\n", 1),
			want:  "patching file f\nReversed (or previously applied) patch detected!  Assume -R? [n] \nApply anyway? [n] \nSkipping patch.\n1 out of 1 hunk ignored -- saving rejects to file f.rej\n",
			after: strings.Replace(f, "\n5\n", "\nfive\n", 1), status: 1,
		},
		{
			what: "again -N", line: "patch -p1 -N", patch: five, file: strings.Replace(f, "\n5\n", "\nfive\n", 1),
			want:  "patching file f\nReversed (or previously applied) patch detected!  Skipping patch.\n1 out of 1 hunk ignored -- saving rejects to file f.rej\n",
			after: strings.Replace(f, "\n5\n", "\nfive\n", 1), status: 1,
		},
		{what: "back", line: "patch -p1 -R", patch: five, file: strings.Replace(f, "\n5\n", "\nfive\n", 1), want: "patching file f\n", after: f},
		{what: "removed", line: "patch -p1", patch: "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", file: "a\nb\n", want: "patching file f\n", after: "(none)"},
		{what: "garbage", line: "patch", patch: "junk\n", file: f, want: "patch: **** Only garbage was found in the patch input.\n", after: f, status: 2},
		{
			what: "outside", line: "patch -p0", patch: "--- ../f\n+++ /f\n@@ -1 +1 @@\n-1\n+x\n", file: f,
			want:  "can't find file to patch at input line 3\nPerhaps you used the wrong -p or --strip option?\nThe text leading up to this was:\n--------------------------\n|--- ../f\n|+++ /f\n--------------------------\nFile to patch: \nSkip this patch? [y] \nSkipping patch.\n1 out of 1 hunk ignored\n",
			after: f, status: 1,
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newRig(t, map[string]string{"f": c.file})
			got, status := r.run(c.patch, c.line)
			if got != c.want || status != c.status {
				t.Errorf("%d\n%s\nwant %d\n%s", status, got, c.status, c.want)
			}
			if r.file("f") != c.after {
				t.Errorf("after: %q", r.file("f"))
			}
		})
	}
}

func TestPatchFiles(t *testing.T) {
	git := `diff --git a/old/x b/new/x
similarity index 50%
rename from old/x
rename to new/x
--- a/old/x
+++ b/new/x
@@ -1,2 +1,2 @@
 1
-2
+two
diff --git a/run b/run
new file mode 100755
--- /dev/null
+++ b/run
@@ -0,0 +1 @@
+#!/bin/sh
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-gone
`
	r := newRig(t, map[string]string{"old/x": "1\n2\n", "gone": "gone\n"})
	got, status := r.run(git, "patch -p1")
	want := "patching file new/x (renamed from old/x)\npatching file run\npatching file gone\n"
	if got != want || status != 0 || r.file("new/x") != "1\ntwo\n" || r.file("old/x") != "(none)" || r.file("gone") != "(none)" || r.file("run") != "#!/bin/sh\n" {
		t.Errorf("%d %s", status, got)
	}
	if got, status := r.run(git, "patch -p1 -R"); status != 0 || r.file("old/x") != "1\n2\n" || r.file("new/x") != "(none)" || r.file("run") != "(none)" || r.file("gone") != "gone\n" {
		t.Errorf("back: %d %s", status, got)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add("--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n")
	f.Add("1c1\n< a\n---\n> b\n")
	f.Add("*** a\n--- a\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n")
	f.Add("diff --git a/a b/b\nrename from a\nrename to b\n")
	f.Add("--- a\n+++ a\n@@ -99999999999999999999 +1,0 @@\n\\ No newline\n")
	f.Fuzz(func(t *testing.T, p string) {
		r := newRig(t, map[string]string{"w/a": "a\nb\nc\n", "outside": "kept"})
		r.c.Dir = "/w"
		r.run(p, "patch -p0")
		r.run(p, "patch -p1 -R -t")
		if r.file("outside") != "kept" {
			t.Error("it left the directory")
		}
	})
}
