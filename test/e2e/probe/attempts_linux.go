package main

// attempts names every attempt. The test outside refers to them by these names.
func attempts() map[string]attempt {
	return map[string]attempt{
		// The doors, as clients use them (and as attackers spell things).
		"door.connect": doorConnect,
		"door.http":    doorHTTP,
		"door.socks5":  doorSOCKS5,
		"door.socks4":  doorSOCKS4,
		"door.direct":  doorDirect,
		"door.half":    doorHalf,
		"door.udp":     doorUDP,
		"door.dns":     doorDNS,

		// Transport protocols.
		"tcp":             tcpPlain,
		"tcp.fastopen":    tcpFastOpen,
		"tcp.mptcp":       tcpMPTCP,
		"tcp.bindtodev":   tcpBindToDevice,
		"tcp.mark":        tcpMark,
		"tcp.transparent": tcpTransparent,
		"tcp.sourceroute": tcpSourceRoute,
		"tcp.split":       tcpSplitHello,
		"udp":             udpSend,
		"udp.broadcast":   udpBroadcast,
		"udp.multicast":   udpMulticast,
		"udplite":         udpLite,
		"icmp.dgram":      icmpDgram,
		"icmp.raw":        icmpRaw,
		"raw.ip":          rawIP,
		"sctp":            sctp,
		"dccp":            dccp,
		"packet":          packetSocket,
		"socket":          socketFamily,

		// Sockets that are not on the network.
		"unix":          unixStream,
		"unix.dgram":    unixDgram,
		"unix.abstract": unixAbstract,
		"unix.find":     unixFind,
		"vsock":         vsock,

		// The namespace and its rules.
		"netlink.open":  netlinkOpen,
		"netlink.addr":  netlinkAddAddr,
		"netlink.route": netlinkDelRoute,
		"netlink.link":  netlinkAddLink,
		"netlink.nft":   netlinkFlushRules,
		"unshare":       unshareFlags,
		"clone":         cloneFlags,
		"setns.proc":    setnsProc,
		"setns.pidfd":   setnsPidfd,
		"mount.tmpfs":   mountTmpfs,
		"mount.bind":    mountBind,
		"mount.proc":    mountProc,
		"mount.umount":  umountPath,
		"mount.fsopen":  fsOpen,
		"chroot":        chrootDir,
		"pivot_root":    pivotRoot,

		// Other processes.
		"ptrace":         ptraceAttach,
		"vm.read":        processVMRead,
		"pidfd.getfd":    pidfdGetfd,
		"proc.read":      procRead,
		"proc.processes": procProcesses,
		"kill.pid":       killPid,
		"kill.all":       killAll,
		"fds":            inheritedFDs,
		"fork.many":      forkMany,
		"survivor":       survivor,
		"ipc.shm":        sysvShm,
		"ipc.mq":         posixMQ,

		// System calls and files that only the uid or nothing guards.
		"syscall":    rawSyscall,
		"x32":        x32Getpid,
		"i386":       i386Getpid,
		"tiocsti":    tiocsti,
		"write":      writeFile,
		"open.write": openForWriting,
		"rename":     renameFile,
		"remove":     removeFile,
		"read":       readFile,
		"mknod":      mknodDisk,
		"status":     statusLine,
		"env.secret": envSecret,
		"nested":     nestedNamespace,
	}
}
