package modes

import "io/fs"

// FileKind is what stat and rm call a kind of file.
func FileKind(m fs.FileMode, size int64) string {
	switch String(m)[0] {
	case 'd':
		return "directory"
	case 'l':
		return "symbolic link"
	case 'p':
		return "fifo"
	case 's':
		return "socket"
	case 'c':
		return "character special file"
	case 'b':
		return "block special file"
	}
	if size == 0 {
		return "regular empty file"
	}
	return "regular file"
}
