package records

// MarkLeaving notes that the run of a process is done with its sandbox, and reports
// whether it was the last one: of several that leave at once exactly one is.
func (s *Store) MarkLeaving(sandbox, id string) (last bool, err error) {
	ids, err := s.processIDs(sandbox)
	if err != nil {
		return false, err
	}
	err = s.locked(sandboxDir(sandbox), func() error {
		p, err := s.process(sandbox, id)
		if err != nil {
			return err
		}
		p.Metadata.Leaving = true
		if err := s.write(processFile(sandbox, id, processRecord), p); err != nil {
			return err
		}
		for _, other := range ids {
			if other == id {
				continue
			}
			// A record that cannot be read keeps no sandbox running.
			if p, err := s.process(sandbox, other); err == nil && !p.Over() && !p.Metadata.Leaving && s.HasRecorder(sandbox, other) {
				return nil
			}
		}
		last = true
		return nil
	})
	return last, err
}
