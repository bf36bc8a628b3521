// Package hermetic runs shell scripts without processes and without sockets.
package hermetic
