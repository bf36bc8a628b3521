package policy

import (
	"embed"
	"slices"
	"strings"
)

// Each preset is a short data file: one rule a line, # comments say where the
// list comes from. The name github:read is that of the file github.read.txt.
//
//go:embed presets/*.txt
var presetFiles embed.FS

// PresetNames lists the built-in presets in order.
func PresetNames() []string {
	entries, err := presetFiles.ReadDir("presets")
	if err != nil {
		return nil // unreachable: the directory is part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.ReplaceAll(strings.TrimSuffix(e.Name(), ".txt"), ".", ":"))
	}
	slices.Sort(names)
	return names
}

// PresetText reports the rules of a preset as written, comments included;
// false for an unknown preset.
func PresetText(name string) (string, bool) {
	if strings.ContainsAny(name, "/\\.") {
		return "", false
	}
	data, err := presetFiles.ReadFile("presets/" + strings.ReplaceAll(name, ":", ".") + ".txt")
	if err != nil {
		return "", false
	}
	return string(data), true
}
