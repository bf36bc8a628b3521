package mountinfo

import "strings"

// At reports where the mount that path lies on is mounted, and whether it can only
// be read. data is what a mountinfo file holds; path is absolute and clean. An
// empty point: data does not say.
//
// Parents are followed from the root, as the kernel walks a path: a mount that a
// later one hides is not taken for the answer.
func At(data, path string) (point string, readOnly bool) {
	type entry struct {
		id, parent, point string
		readOnly          bool
	}
	var all []entry
	ids := map[string]bool{}
	for line := range strings.Lines(data) {
		f := strings.SplitN(line, " ", 7) // ID, parent, device, root, point, options, the rest
		if len(f) < 7 {
			continue
		}
		e := entry{id: f[0], parent: f[1], point: unescape(f[4]), readOnly: f[5] == "ro" || strings.HasPrefix(f[5], "ro,")}
		ids[e.id] = true
		if Within(path, e.point) {
			all = append(all, e)
		}
	}
	at := ""
	for _, e := range all {
		if e.point == "/" && (!ids[e.parent] || e.parent == e.id) {
			at, point, readOnly = e.id, e.point, e.readOnly
		}
	}
	for range all { // each step goes one mount up or further in
		next := -1
		for i, e := range all {
			if e.parent == at && e.id != at && (next < 0 || len(e.point) < len(all[next].point)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		at, point, readOnly = all[next].id, all[next].point, all[next].readOnly
	}
	return point, readOnly
}
