package file

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// magic is a beginning that says what a file is.
type magic struct {
	at         int
	head       string
	text, mime string
}

var magics = []magic{
	{0, "\xfd7zXZ\x00", "XZ compressed data", "application/x-xz"},
	{0, "\x28\xb5\x2f\xfd", "Zstandard compressed data (v0.8+), Dictionary ID: None", "application/zstd"},
	{0, "7z\xbc\xaf\x27\x1c", "7-zip archive data, version 0.4", "application/x-7z-compressed"},
	{0, "Rar!\x1a\x07", "RAR archive data", "application/x-rar"},
	{0, "!<arch>\n", "current ar archive", "application/x-archive"},
	{0, "SQLite format 3\x00", "SQLite 3.x database", "application/vnd.sqlite3"},
	{0, "\x00asm\x01\x00\x00\x00", "WebAssembly (wasm) binary module version 0x1 (MVP)", "application/wasm"},
	{257, "ustar  \x00", "POSIX tar archive (GNU)", "application/x-tar"},
	{257, "ustar\x00", "POSIX tar archive", "application/x-tar"},
	{0, "OggS", "Ogg data", "application/ogg"},
	{0, "ID3", "Audio file with ID3 version 2", "audio/mpeg"},
	{0, "fLaC", "FLAC audio bitstream data", "audio/flac"},
	{0, "\xca\xfe\xba\xbe\x00\x00\x00\x34", "compiled Java class data, version 52.0 (Java 1.8)", "application/x-java-applet"},
	{0, "wOFF", "Web Open Font Format", "font/woff"},
	{0, "wOF2", "Web Open Font Format (Version 2)", "font/woff2"},
	{0, "\x00\x01\x00\x00\x00", "TrueType Font data", "font/sfnt"},
	{0, "MZ", "MS-DOS executable", "application/x-dosexec"},
	{4, "ftyp", "ISO Media", "video/mp4"},
	{0, "\x1a\x45\xdf\xa3", "Matroska data", "video/x-matroska"},
	{0, "\x00\x00\x01\x00", "MS Windows icon resource", "image/vnd.microsoft.icon"},
	{0, "II*\x00", "TIFF image data, little-endian", "image/tiff"},
	{0, "MM\x00*", "TIFF image data, big-endian", "image/tiff"},
}

// classify says what content is.
func classify(b []byte) kindOf {
	if len(b) == 0 {
		return kindOf{"empty", "inode/x-empty", "binary"}
	}
	s := string(b[:min(len(b), 4096)])
	name, charset := encoding(b)
	if len(b) == 1 {
		return kindOf{"very short file (no magic)", "application/octet-stream", charset}
	}
	for _, f := range []func(string) (kindOf, bool){compressed, image, executable, document} {
		if k, ok := f(s); ok {
			if k.charset == "" {
				k.charset = charset
			}
			return k
		}
	}
	for _, m := range magics {
		if len(s) >= m.at+len(m.head) && s[m.at:m.at+len(m.head)] == m.head {
			return kindOf{m.text, m.mime, "binary"}
		}
	}
	if name == "" {
		return kindOf{"data", "application/octet-stream", "binary"}
	}
	return textKind(b, s, name, charset)
}

func compressed(s string) (kindOf, bool) {
	switch {
	case strings.HasPrefix(s, "\x1f\x8b") && len(s) >= 10:
		text := "gzip compressed data"
		if s[3]&8 != 0 {
			if name, _, ok := strings.Cut(s[10:], "\x00"); ok {
				text += fmt.Sprintf(", was %q", name)
			}
		}
		if t := binary.LittleEndian.Uint32([]byte(s[4:8])); t != 0 {
			text += ", last modified: " + gzipTime(t)
		}
		switch s[8] {
		case 2:
			text += ", max compression"
		case 4:
			text += ", max speed"
		}
		if s[9] == 3 {
			text += ", from Unix"
		}
		if len(s) < 4096 && len(s) >= 18 {
			text += fmt.Sprintf(", original size modulo 2^32 %d", binary.LittleEndian.Uint32([]byte(s[len(s)-4:])))
		}
		return kindOf{text, "application/gzip", "binary"}, true
	case strings.HasPrefix(s, "BZh") && len(s) > 3:
		return kindOf{fmt.Sprintf("bzip2 compressed data, block size = %c00k", s[3]), "application/x-bzip2", ""}, true
	case strings.HasPrefix(s, "PK\x03\x04") && len(s) >= 10:
		method := map[byte]string{0: "store", 8: "deflate"}[s[8]]
		text := fmt.Sprintf("Zip archive data, at least v%d.%d to extract", s[4]/10, s[4]%10)
		if method != "" {
			text += ", compression method=" + method
		}
		return kindOf{text, "application/zip", "binary"}, true
	case strings.HasPrefix(s, "PK\x05\x06"):
		return kindOf{"Zip archive data (empty)", "application/zip", "binary"}, true
	}
	return kindOf{}, false
}

func image(s string) (kindOf, bool) {
	b := []byte(s)
	switch {
	case strings.HasPrefix(s, "\x89PNG\r\n\x1a\n") && len(b) >= 29:
		kind := map[byte]string{0: "grayscale", 2: "RGB", 3: "colormap", 4: "gray+alpha", 6: "RGBA"}[b[25]]
		lace := "non-interlaced"
		if b[28] != 0 {
			lace = "interlaced"
		}
		text := fmt.Sprintf("PNG image data, %d x %d, %d-bit", binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:]), b[24])
		if kind == "grayscale" || kind == "colormap" {
			text += " " + kind
		} else {
			text += "/color " + kind
		}
		return kindOf{text + ", " + lace, "image/png", "binary"}, true
	case strings.HasPrefix(s, "GIF8") && len(b) >= 10:
		return kindOf{fmt.Sprintf("GIF image data, version %s, %d x %d", s[3:6], binary.LittleEndian.Uint16(b[6:]), binary.LittleEndian.Uint16(b[8:])), "image/gif", "binary"}, true
	case strings.HasPrefix(s, "\xff\xd8\xff"):
		text := "JPEG image data"
		if len(b) >= 20 && s[6:10] == "JFIF" {
			ratio := map[byte]string{0: "aspect ratio", 1: "resolution (DPI)", 2: "resolution (DPCM)"}[b[13]]
			text += fmt.Sprintf(", JFIF standard %d.%02d, %s, density %dx%d, segment length %d", b[11], b[12], ratio,
				binary.BigEndian.Uint16(b[14:]), binary.BigEndian.Uint16(b[16:]), binary.BigEndian.Uint16(b[4:]))
		}
		return kindOf{text, "image/jpeg", "binary"}, true
	case strings.HasPrefix(s, "RIFF") && len(s) >= 12:
		switch s[8:12] {
		case "WEBP":
			return kindOf{"RIFF (little-endian) data, Web/P image", "image/webp", "binary"}, true
		case "WAVE":
			return kindOf{"RIFF (little-endian) data, WAVE audio", "audio/x-wav", "binary"}, true
		}
		return kindOf{"RIFF (little-endian) data", "application/octet-stream", "binary"}, true
	case strings.HasPrefix(s, "BM") && len(b) >= 30 && b[14] == 40:
		return kindOf{fmt.Sprintf("PC bitmap, Windows 3.x format, %d x %d x %d", binary.LittleEndian.Uint32(b[18:]), int32(binary.LittleEndian.Uint32(b[22:])), binary.LittleEndian.Uint16(b[28:])), "image/bmp", "binary"}, true
	}
	return kindOf{}, false
}

func executable(s string) (kindOf, bool) {
	if !strings.HasPrefix(s, "\x7fELF") || len(s) < 20 {
		return kindOf{}, false
	}
	b := []byte(s)
	order := binary.ByteOrder(binary.LittleEndian)
	end := "LSB"
	if b[5] == 2 {
		order, end = binary.BigEndian, "MSB"
	}
	bits := map[byte]string{1: "32-bit", 2: "64-bit"}[b[4]]
	kind := map[uint16][2]string{
		1: {"relocatable", "application/x-object"}, 2: {"executable", "application/x-executable"},
		3: {"shared object", "application/x-sharedlib"}, 4: {"core file", "application/x-coredump"},
	}[order.Uint16(b[16:])]
	machine := map[uint16]string{3: "Intel 80386", 40: "ARM", 62: "x86-64", 183: "ARM aarch64", 243: "UCB RISC-V"}[order.Uint16(b[18:])]
	return kindOf{fmt.Sprintf("ELF %s %s %s, %s, version 1 (SYSV)", bits, end, kind[0], machine), kind[1], "binary"}, true
}

func document(s string) (kindOf, bool) {
	if v, ok := strings.CutPrefix(s, "%PDF-"); ok && len(v) >= 3 {
		return kindOf{"PDF document, version " + v[:3], "application/pdf", ""}, true
	}
	return kindOf{}, false
}

var (
	shebang   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^#! ?(?:/usr/bin/env +(?:-S +)?)?(\S+)`) })
	pythonish = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^(?:import [\w.]+|from [\w.]+ import |def \w+\(.*\).*:|class \w+.*:)`)
	})
	cish = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^(?:#\s*include\s*[<"]|package \w+$|int main\s*\()`)
	})
	htmlish = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^\s*(?:<!doctype html|<html|<head|<body|<title|<h1)`)
	})
	mailish = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:From|To|Received|Return-Path|Message-ID|Subject|Date): `)
	})
)

// textKind is what file says about a text.
func textKind(b []byte, s, name, charset string) kindOf {
	tail := linesOf(b)
	text := func(what, mime string) kindOf { return kindOf{what + ", " + name + tail, mime, charset} }
	if m := shebang().FindStringSubmatch(s); m != nil {
		return script(m[1], name, tail, charset)
	}
	trimmed := strings.TrimLeft(s, " \t\r\n")
	switch {
	case (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) && json.Valid(b):
		return kindOf{"JSON text data", "application/json", charset}
	case strings.HasPrefix(s, "<?xml"):
		if strings.Contains(s, "<svg") {
			return kindOf{"SVG Scalable Vector Graphics image", "image/svg+xml", charset}
		}
		return text("XML 1.0 document", "text/xml")
	case strings.HasPrefix(trimmed, "<svg"):
		return kindOf{"SVG Scalable Vector Graphics image", "image/svg+xml", charset}
	case htmlish().MatchString(s):
		return text("HTML document", "text/html")
	case strings.HasPrefix(s, "diff ") || strings.HasPrefix(s, "--- ") && strings.Contains(s, "\n+++ "):
		return text("diff output", "text/x-diff")
	case strings.HasPrefix(s, "-----BEGIN CERTIFICATE-----"):
		return kindOf{"PEM certificate", "text/plain", charset}
	case strings.HasPrefix(s, "-----BEGIN") && strings.Contains(s, "PRIVATE KEY-----"):
		return kindOf{"PEM private key", "text/plain", charset}
	case cish().MatchString(s):
		return text("C source", "text/x-c")
	case pythonish().MatchString(s):
		return kindOf{"Python script, " + name + " executable" + tail, "text/x-script.python", charset}
	case mailish().MatchString(s):
		return text("news or mail", "message/rfc822")
	case isCSV(s):
		return kindOf{"CSV text", "text/csv", charset}
	}
	return kindOf{name + tail, "text/plain", charset}
}

func script(path, name, tail, charset string) kindOf {
	kinds := map[string][2]string{
		"sh": {"POSIX shell script", "text/x-shellscript"}, "bash": {"Bourne-Again shell script", "text/x-shellscript"},
		"dash": {"POSIX shell script", "text/x-shellscript"}, "zsh": {"Paul Falstad's zsh script", "text/x-shellscript"},
		"node": {"Node.js script", "application/javascript"}, "perl": {"Perl script text", "text/x-perl"},
		"ruby": {"Ruby script", "text/x-ruby"}, "awk": {"awk script", "text/x-awk"}, "php": {"PHP script", "text/x-php"},
	}
	base := path[strings.LastIndexByte(path, '/')+1:]
	k, ok := kinds[base]
	switch {
	case strings.HasPrefix(base, "python"):
		k = [2]string{"Python script", "text/x-script.python"}
	case !ok:
		k = [2]string{"a " + path + " script", "text/plain"}
	}
	return kindOf{k[0] + ", " + name + " executable" + tail, k[1], charset}
}

// isCSV says whether at least two lines have the same number of fields, which
// is more than one.
func isCSV(s string) bool {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	if len(s) == 4096 {
		lines = lines[:len(lines)-1]
	}
	if len(lines) < 2 {
		return false
	}
	n := strings.Count(lines[0], ",")
	for i, l := range lines {
		if i < 10 && strings.Count(l, ",") != n {
			return false
		}
	}
	return n > 0
}
