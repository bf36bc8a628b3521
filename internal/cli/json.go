package cli

import "encoding/json"

// PrintJSON prints v as an answer, for programs. Every field that it has is documented;
// new ones may come, and none changes its meaning.
func (p *Program) PrintJSON(v any) int {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return p.Fail(ExitNo, err)
	}
	return p.Print(string(data) + "\n")
}
