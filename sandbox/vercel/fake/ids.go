package fake

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// token is n characters of alphabet.
func token(alphabet string, n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails, crypto/rand
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return string(b)
}

func sessionID() string  { return "sbx_" + token(base62, 28) }
func snapshotID() string { return "snap_" + token(base62, 28) }
func driveID() string    { return "drive_" + token(base62, 28) }
func subdomain() string  { return "sb-" + token("abcdefghijklmnopqrstuvwxyz0123456789", 12) }

func commandID() string {
	b := make([]byte, 14)
	_, _ = rand.Read(b)
	return "cmd_" + hex.EncodeToString(b)
}

// generatedName is the name of a sandbox that was given none.
func generatedName() string { return "sandbox-" + strings.ToLower(token(base62, 12)) }

func requestID() string {
	return "iad1::" + strings.ToLower(token(base62, 5)) + "-" + strconv.FormatInt(nowMs(), 10) + "-" + strings.ToLower(token(base62, 12))
}

func nowMs() int64 { return time.Now().UnixMilli() }

func ptr[T any](v T) *T { return &v }
