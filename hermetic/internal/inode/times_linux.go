package inode

import (
	"syscall"
	"time"
)

func (i *Inode) times(st *syscall.Stat_t) {
	i.Atime, i.Ctime = time.Unix(st.Atim.Unix()), time.Unix(st.Ctim.Unix())
}
