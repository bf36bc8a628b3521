// Package containers holds the tests of what is deployed: they build the image
// from the Dockerfile and run the manifests, the compose file and the systemd
// units as shipped, with Podman, an agent image and a network made for it.
//
// The tests have the build tag system: they need root, Podman and a Debian
// mirror.
package containers
