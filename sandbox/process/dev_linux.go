package process

import (
	"os"

	"egressd/sandbox/process/control"
)

// planDevices lists the devices that every program may use, and the terminal
// that the launcher was given.
func planDevices(terminal string) []control.Device {
	var devices []control.Device
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		path := "/dev/" + name
		if _, err := os.Lstat(path); err == nil || name == "null" {
			devices = append(devices, control.Device{Source: path, Path: path})
		}
	}
	if terminal != "" {
		devices = append(devices, control.Device{Source: terminal, Path: "/dev/console"})
	}
	return devices
}
