// Package api is a client of Vercel Sandbox's REST protocol, of use on its own.
// What is asked for again after a failure is what can be asked for twice: a
// command is never started twice, nor is a stream begun again that has begun.
package api
