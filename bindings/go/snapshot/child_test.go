package snapshot

// isChild runs the part of a test that needs a process of its own, if this process was started for
// one, and returns whether it was.
func isChild() bool {
	return false
}
