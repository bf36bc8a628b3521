package compare

import "egressd/sandbox/hermetic/gnu"

func patch(w *gnu.Work) {}
