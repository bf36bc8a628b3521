// Package pod captures a network namespace that has a real network and is shared
// by an agent and egressd, such as a Kubernetes pod's:
//
//	rules := pod.Rules{Users: []uint32{65532}, TransparentPort: 3129, DNSPort: 3130}
//	result, err := rules.Install() // in the namespace, from an init container
//	err = rules.Verify()           // exactly these are installed
//	fmt.Print(rules.Text(result.Devices))
//
// What the agent sends goes to egressd's doors, and nothing else leaves. Egressd
// itself, known by its user or by a packet mark, is exempted.
//
// The rules are two nftables tables named egressd, installed through netlink in
// one transaction. They hold whether egressd runs or not: without it captured
// connections are refused. Other tables are never changed, and none of them can
// let out what ours refuse.
//
// Nothing here decides who may talk to whom.
package pod
