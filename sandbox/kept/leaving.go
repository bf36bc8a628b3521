package kept

// Leaving notes that a process's run is done with its sandbox, and reports
// whether it was the last one: of several that leave at once exactly one is.
func (s *Store) Leaving(sandbox, id string) (last bool, err error) {
	ids, err := s.processIDs(sandbox)
	if err != nil {
		return false, err
	}
	err = s.locked(sandboxDir(sandbox), func() error {
		p, err := s.process(sandbox, id)
		if err != nil {
			return err
		}
		if p.Metadata == nil {
			p.Metadata = map[string]any{}
		}
		p.Metadata["leaving"] = true
		if err := s.write(processFile(sandbox, id, processRecord), p); err != nil {
			return err
		}
		for _, other := range ids {
			if other == id {
				continue
			}
			// One that cannot be read is nobody's that could be waited for.
			if p, err := s.process(sandbox, other); err == nil && !p.Over() && p.Metadata["leaving"] != true && s.Recorded(sandbox, other) {
				return nil
			}
		}
		last = true
		return nil
	})
	return last, err
}
