// Package pod captures a network namespace that has a real network and is
// shared by an agent and egressd: a Kubernetes pod, containers that share one
// network. What the agent sends goes to egressd's doors, and nothing else
// leaves; egressd itself, told by its user or by a packet mark, is exempted.
//
// The rules are two nftables tables named egressd, installed through netlink
// in one transaction. They hold whether egressd runs or not: without it
// captured connections are refused. Other tables are never touched, and none
// of them can let out what ours refuse.
//
// Nothing here decides who may talk to whom.
package pod
