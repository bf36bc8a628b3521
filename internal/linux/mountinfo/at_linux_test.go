package mountinfo

import "testing"

func TestAt(t *testing.T) {
	const data = `1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw
2 1 0:20 / /tmp rw - tmpfs none rw
3 1 8:1 /home/u /home/u ro,relatime - ext4 /dev/sda1 rw
4 3 8:1 /home/u/w /home/u/w rw - ext4 /dev/sda1 rw
5 4 8:1 /home/u/w/p /home/u/w/p ro - ext4 /dev/sda1 rw
6 1 8:1 /x /hidden/deep ro - ext4 /dev/sda1 rw
7 1 0:21 / /hidden rw - tmpfs none rw
8 2 0:22 / /tmp rw,nosuid - tmpfs none rw
9 8 0:23 / /tmp/a\040b ro - tmpfs none rw
`
	// 6 was mounted first and stays reachable only below mount 1, which 7 covers at
	// /hidden: the kernel gave 7 the parent 1 as well, and walks into 7 first.
	for _, tt := range []struct {
		path, point string
		readOnly    bool
	}{
		{"/etc/passwd", "/", false},
		{"/home/u/.bashrc", "/home/u", true},
		{"/home/u/w/x", "/home/u/w", false},
		{"/home/u/w/p", "/home/u/w/p", true},
		{"/home/u/w/pp", "/home/u/w", false},
		{"/hidden/deep/f", "/hidden", false},
		{"/tmp/x", "/tmp", false},
		{"/tmp/a b/c", "/tmp/a b", true},
	} {
		if point, ro := At(data, tt.path); point != tt.point || ro != tt.readOnly {
			t.Errorf("%s lies on %q, read-only %v; want %q, %v", tt.path, point, ro, tt.point, tt.readOnly)
		}
	}
	if point, _ := At("", "/x"); point != "" {
		t.Errorf("an empty table has a mount %q", point)
	}
	own, err := Read()
	if err != nil || len(own) == 0 {
		t.Fatal(err)
	}
}
