//go:build !unix || aix || solaris

package snapshot

import "os"

// identity is the identity of a file, to detect that another file has its path.
type identity struct {
	length, modified int64
}

// identify returns the identity of the file at a path.
func identify(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, ioError(path, "stat", reason(err))
	}
	return identity{length: info.Size(), modified: info.ModTime().UnixNano()}, nil
}
