package main

// int80Getpid calls getpid the way 32-bit programs do.
func int80Getpid() uintptr
