//go:build !amd64

package inside

// renameCall is no call: there is renameat.
const renameCall = -1
