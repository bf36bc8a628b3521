// Package rules describes what a captured network namespace obeys, in words
// that nft prints and in the form that the kernel takes.
//
// Nothing that ships imports it: package capture holds the rules encoded, so
// that no start waits for the encoding, and a test of netns writes that file
// from here, holds it against here, and both against nft.
package rules
