package diff_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	left  = "a\nb\nc\nd\ne\nf\ng\nh\n"
	right = "a\nB\nc\nd\ne\nf\nh\nx"
	stamp = "\t2024-05-06 07:08:09.123456789 +0000\n"
)

// Expectations were recorded from GNU diffutils 3.8.
func TestDiff(t *testing.T) {
	r := newRig(t, map[string]string{
		"1": left, "2": right, "e": "", "s": "a  b\nC\n\n\nx\n", "t": "a b \nc\n\nx\n", "bin1": "a\x00b", "bin2": "a\x00c",
		"p/x": "a\n", "q/x": "b\n", "p/y": "y\n", "q/s/z": "z\n", "p/t/z": "z\n", "q/t/w": "", "f.c": "int main()\n{\n1\n2\n3\n4\n5\n}\n", "g.c": "int main()\n{\n1\n2\n3\n4\nfive\n}\n",
	})
	heads := "--- 1" + stamp + "+++ 2" + stamp
	for _, c := range []struct {
		line, want string
		status     int
	}{
		{"diff 1 1", "", 0},
		{"diff 1 2", "2c2\n< b\n---\n> B\n7d6\n< g\n8a8\n> x\n\\ No newline at end of file\n", 1},
		{"diff -u 1 2", heads + "@@ -1,8 +1,8 @@\n a\n-b\n+B\n c\n d\n e\n f\n-g\n h\n+x\n\\ No newline at end of file\n", 1},
		{"diff -U0 1 2", heads + "@@ -2 +2 @@\n-b\n+B\n@@ -7 +6,0 @@\n-g\n@@ -8,0 +8 @@\n+x\n\\ No newline at end of file\n", 1},
		{"diff -c 1 2", "*** 1" + stamp + "--- 2" + stamp + "***************\n*** 1,8 ****\n  a\n! b\n  c\n  d\n  e\n  f\n- g\n  h\n--- 1,8 ----\n  a\n! B\n  c\n  d\n  e\n  f\n  h\n+ x\n\\ No newline at end of file\n", 1},
		{"diff -y -W 40 1 1", "a\t\t\ta\nb\t\t\tb\nc\t\t\tc\nd\t\t\td\ne\t\t\te\nf\t\t\tf\ng\t\t\tg\nh\t\t\th\n", 0},
		{"diff -n 1 2", "d2 1\na2 1\nB\nd7 1\na8 1\nx", 1},
		{"diff -e e 1", "0a\n" + left + ".\n", 1},
		{"diff -u --label L e s", "--- L\n+++ s" + stamp + "@@ -0,0 +1,5 @@\n+a  b\n+C\n+\n+\n+x\n", 1},
		{"diff -q 1 2", "Files 1 and 2 differ\n", 1},
		{"diff -s 1 1", "Files 1 and 1 are identical\n", 0},
		{"diff -wiB s t", "", 0},
		{"diff -wi s t", "3d2\n< \n", 1},
		{"diff -I ^[Cc] -bB s t", "", 0},
		{"diff bin1 bin2", "Binary files bin1 and bin2 differ\n", 1},
		{"diff -U1 -p f.c g.c", "--- f.c" + stamp + "+++ g.c" + stamp + "@@ -6,3 +6,3 @@ int main()\n 4\n-5\n+five\n }\n", 1},
		{"diff p q", "Only in q: s\nCommon subdirectories: p/t and q/t\ndiff p/x q/x\n1c1\n< a\n---\n> b\nOnly in p: y\n", 1},
		{"diff -r -x x p q", "Only in q: s\nOnly in q/t: w\nOnly in p/t: z\nOnly in p: y\n", 1},
		{"diff -rN -q p q", "Files p/s/z and q/s/z differ\nFiles p/t/z and q/t/z differ\nFiles p/x and q/x differ\nFiles p/y and q/y differ\n", 1},
		{"diff -ruN p/t q/t", "diff -ruN p/t/z q/t/z\n--- p/t/z" + stamp + "+++ q/t/z\t1970-01-01 00:00:00.000000000 +0000\n@@ -1 +0,0 @@\n-z\n", 1},
		{"diff nope 1", "diff: nope: No such file or directory\n", 2},
		{"diff p 1", "diff: p/1: No such file or directory\n", 2},
		{"diff 1", "diff: missing operand after '1'\ndiff: Try 'diff --help' for more information.\n", 2},
		{"diff --foo 1 2", "diff: unrecognized option '--foo'\ndiff: Try 'diff --help' for more information.\n", 2},
		{"diff - 1", "", 0},
	} {
		got, status := r.run(left, c.line)
		if got != c.want || status != c.status {
			t.Errorf("%s: %d\n%s\nwant %d\n%s", c.line, status, got, c.status, c.want)
		}
	}
}

func TestCmp(t *testing.T) {
	r := newRig(t, map[string]string{"1": left, "2": right, "s": "a\n", "t": "a\nb\n", "u": "a", "e": ""})
	for _, c := range []struct {
		line, want string
		status     int
	}{
		{"cmp 1 1", "", 0},
		{"cmp 1 2", "1 2 differ: byte 3, line 2\n", 1},
		{"cmp -s 1 2", "", 1},
		{"cmp -b 1 2", "1 2 differ: byte 3, line 2 is 142 b 102 B\n", 1},
		{"cmp -l 1 2", " 3 142 102\n13 147 150\n15 150 170\ncmp: EOF on 2 after byte 15\n", 1},
		{"cmp -n 2 1 2", "", 0},
		{"cmp -i 3 1 2", "1 2 differ: byte 10, line 6\n", 1},
		{"cmp s t", "cmp: EOF on s after byte 2, line 1\n", 1},
		{"cmp u s", "cmp: EOF on u after byte 1, in line 1\n", 1},
		{"cmp e s", "cmp: EOF on e which is empty\n", 1},
		{"cmp nope 1", "cmp: nope: No such file or directory\n", 2},
	} {
		got, status := r.run("", c.line)
		if got != c.want || status != c.status {
			t.Errorf("%s: %d\n%s\nwant %d\n%s", c.line, status, got, c.status, c.want)
		}
	}
}

// What diff writes, patch makes of the one file the other, and back.
func TestDiffAndPatch(t *testing.T) {
	for seed := range uint64(12) {
		g := rand.New(rand.NewPCG(seed, 1))
		text := func(n int) string {
			var b strings.Builder
			for range n {
				fmt.Fprintln(&b, g.IntN(4))
			}
			return strings.Repeat("x\n", g.IntN(3)) + b.String()[:max(0, b.Len()-g.IntN(2))]
		}
		a := text(g.IntN(60))
		b := a[:len(a)/2] + text(g.IntN(9)) + a[min(len(a), len(a)/2+2*g.IntN(9)):]
		for _, form := range []string{"-u", "-U0", "-c", "--normal", "-ud"} {
			r := newRig(t, map[string]string{"a": a, "b": b})
			p, status := r.run("", "diff "+form+" a b")
			if (status == 0) != (a == b) {
				t.Fatalf("seed %d %s: %d", seed, form, status)
			}
			if a == b {
				continue
			}
			if out, status := r.run(p, "patch -s a"); status != 0 || r.file("a") != b && !(b == "" && r.file("a") == "(none)") {
				t.Fatalf("seed %d %s: %d %s\n%s\nbecame\n%q, not\n%q of\n%q", seed, form, status, out, p, r.file("a"), b, a)
			}
			if out, status := r.run(p, "patch -s -R a"); status != 0 || r.file("a") != a {
				t.Fatalf("seed %d %s: %d %s back to %q", seed, form, status, out, r.file("a"))
			}
		}
	}
}

// Two big files that have nothing in order in common end in time.
func TestBigDiff(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	text := func() string {
		var b strings.Builder
		for range 4000 {
			fmt.Fprintln(&b, g.IntN(600))
		}
		return b.String()
	}
	r := newRig(t, map[string]string{"a": text(), "b": text()})
	p, status := r.run("", "diff a b")
	if status != 1 {
		t.Fatal(status, len(p))
	}
	want := r.file("b")
	if out, status := r.run(p, "patch -s a"); status != 0 || r.file("a") != want {
		t.Fatal(status, out)
	}
}
