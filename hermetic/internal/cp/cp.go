package cp

import (
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
	"egressd/hermetic/internal/inode"
)

const cpSpec = "a,archive ,attributes-only b ,backup:: ,copy-contents d f,force H i,interactive l,link L,dereference n,no-clobber P,no-dereference " +
	"p ,preserve:: ,no-preserve: ,parents R,recursive r ,reflink:: ,remove-destination ,sparse: ,strip-trailing-slashes s,symbolic-link S,suffix: " +
	"t,target-directory: T,no-target-directory u,update v,verbose x,one-file-system Z,context"

func newCopier(w *gnu.Work) *copier {
	k := &copier{Work: w, suffix: "~", links: map[inode.Key]string{}, made: map[inode.Key]bool{}, given: map[inode.Key]string{}}
	if s := w.Getenv("SIMPLE_BACKUP_SUFFIX"); s != "" && !strings.Contains(s, "/") {
		k.suffix = s
	}
	return k
}

func cp(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... SOURCE... DEST", cpSpec)
	if !ok {
		return
	}
	k := newCopier(w)
	for _, s := range sets {
		if !k.option(s) {
			return
		}
	}
	if k.hard && k.soft {
		w.TryHelp("cannot make both hard and symbolic links")
		return
	}
	if k.parents && (len(operands) < 1 || !k.targetSet && !gnu.IsDir(w, operands[len(operands)-1])) && len(operands) > 1 {
		w.TryHelp("with --parents, the destination must be a directory")
		return
	}
	if k.follow == "" {
		if k.follow = "always"; k.recursive && !k.hard || k.recursive && k.soft {
			k.follow = "never"
		}
		if k.hard {
			k.follow = "never"
		}
	}
	k.operands(operands, func(src, dst string) { k.one(src, dst, 0) })
}

func (k *copier) option(s command.Set) bool {
	switch s.Name {
	case "archive":
		k.recursive, k.follow = true, "never"
		k.keepMode, k.keepTimes, k.keepLinks = true, true, true
	case "attributes-only":
		k.attrOnly = true
	case "d":
		k.follow, k.keepLinks = "never", true
	case "H":
		k.follow = "operands"
	case "dereference":
		k.follow = "always"
	case "no-dereference":
		k.follow = "never"
	case "link":
		k.hard = true
	case "symbolic-link":
		k.soft = true
	case "p":
		k.keepMode, k.keepTimes = true, true
	case "preserve":
		if !s.Given {
			k.keepMode, k.keepTimes = true, true
			return true
		}
		return k.preserve(s, true)
	case "no-preserve":
		return k.preserve(s, false)
	case "parents":
		k.parents = true
	case "recursive", "r", "copy-contents":
		k.recursive = true
	case "remove-destination":
		k.removeDest = true
	case "one-file-system":
		k.oneFS = true
	case "reflink", "sparse":
		_, ok := gnu.OneOf(k.Work, "--"+s.Name, s.Value, "auto", "always", "never")
		return ok || !s.Given
	default:
		return k.shared(s)
	}
	return true
}

// shared are the options of both cp and mv.
func (k *copier) shared(s command.Set) bool {
	switch s.Name {
	case "force":
		k.force = true
		if k.move {
			k.ask, k.noClobber = false, false
		}
	case "interactive":
		k.ask = true
		if k.move {
			k.force = false
		}
		k.noClobber = false
	case "no-clobber":
		k.noClobber, k.ask = true, false
	case "update":
		k.update = true
	case "verbose":
		k.verbose = true
	case "strip-trailing-slashes":
		k.strip = true
	case "target-directory":
		if k.targetSet {
			k.Die(1, "multiple target directories specified")
			return false
		}
		k.target, k.targetSet = s.Value, true
	case "no-target-directory":
		k.noTarget = true
	case "suffix":
		k.suffix = s.Value
		if k.backup == "" {
			return k.setBackup("")
		}
	case "Z", "context":
	case "b", "backup":
		return k.setBackup(s.Value)
	default:
		k.Refuse("-" + s.Name)
		return false
	}
	return true
}

func (k *copier) setBackup(value string) bool {
	option := "backup type"
	if value == "" {
		if value = k.Getenv("VERSION_CONTROL"); value == "" {
			value = "existing"
		} else {
			option = "$VERSION_CONTROL"
		}
	}
	v, ok := gnu.OneOf(k.Work, option, value, "none,off", "simple,never", "existing,nil", "numbered,t")
	if k.backup = v; v == "none" {
		k.backup = ""
	}
	return ok
}

func (k *copier) preserve(s command.Set, keep bool) bool {
	for word := range strings.SplitSeq(s.Value, ",") {
		v, ok := gnu.OneOf(k.Work, "--"+s.Name, word, "mode", "timestamps", "ownership", "links", "context", "xattr", "all")
		if !ok {
			return false
		}
		if v == "mode" || v == "all" {
			k.keepMode, k.plainMode = keep, !keep
		}
		if v == "timestamps" || v == "all" {
			k.keepTimes = keep
		}
		if v == "links" || v == "all" {
			k.keepLinks = keep
		}
	}
	return true
}

func mv(w *gnu.Work) {
	sets, operands, ok := w.Options("[OPTION]... SOURCE... DEST",
		"b ,backup:: f,force i,interactive n,no-clobber ,strip-trailing-slashes S,suffix: t,target-directory: T,no-target-directory u,update v,verbose Z,context")
	if !ok {
		return
	}
	k := newCopier(w)
	k.move, k.recursive, k.follow = true, true, "never"
	k.keepMode, k.keepTimes, k.keepLinks = true, true, true
	for _, s := range sets {
		if !k.shared(s) {
			return
		}
	}
	if k.noClobber && k.backup != "" {
		w.TryHelp("options --backup and --no-clobber are mutually exclusive")
		return
	}
	k.operands(operands, func(src, dst string) { k.one(src, dst, 0) })
}
