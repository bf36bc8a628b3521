//go:build !amd64 && !arm64

package capture

// encodedRules has none for this processor: its byte order may differ, and no one
// has tried it. The system-call filter knows the same two processors.
func encodedRules() []encodedRule { return nil }
