package fake

import "strings"

// Limits of a request, VERCEL.md sections 5.1 and 11.
const (
	maxNameBytes      = 128
	maxPorts          = 15
	minPort, maxPort  = 1024, 65535
	minTimeoutMs      = 1000
	maxTimeoutMs      = 24 * 60 * 60 * 1000
	defaultTimeoutMs  = 300_000
	maxVCPUs          = 32
	defaultVCPUs      = 2
	memoryPerVCPU     = 2048
	maxImageBytes     = 255
	maxTags           = 5
	maxTagBytes       = 256
	minExpirationMs   = 86_400_000
	snapshotLifeMs    = 30 * 86_400_000 // after its last use, by default
	maxKeepSnapshots  = 10
	defaultRegion     = "iad1"
	defaultImage      = "vercel/sandbox/universal:latest"
	universalImage    = "vercel/sandbox/universal"
	shownRuntime      = "node22" // what the universal image calls itself
	defaultRuntime    = "node24" // of the old create
	maxEnv            = 1024
	maxEnvBytes       = 512 << 10
	maxLivingSessions = 256
	maxSandboxes      = 4096
)

// regions are where a sandbox can run.
var regions = []string{
	"arn1", "bom1", "cdg1", "cle1", "cpt1", "dub1", "fra1", "gru1", "hkg1", "hnd1", "iad1", "icn1", "kix1", "lhr1", "pdx1", "sfo1", "sin1", "syd1", "yul1",
}

// images are Vercel's own, each with its tags.
var images = map[string][]string{
	universalImage: {"latest"}, "vercel/sandbox/node": {"22", "24", "26"}, "vercel/sandbox/python": {"3.14"},
	"vercel/sandbox/ubuntu": {"latest"}, "vercel/sandbox/arch": {"latest"},
}

// runtimes are what the old create can be asked for.
var runtimes = []string{"node22", "node24", "node26", "python3.13"}

// namePattern is the pattern that names of sandboxes must match.
const namePattern = "^[a-zA-Z0-9_-]+$"

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// validName reports whether name matches namePattern. (A regular expression
// would be compiled at every start of launch.)
func validName(name string) bool { return name != "" && strings.Trim(name, alphanumeric+"_-") == "" }
