//go:build unix && !aix && !solaris

package snapshot

import "golang.org/x/sys/unix"

// identity is the identity of a file, to detect that another file has its path. It includes the
// times and the length, because the system can reuse the number of a removed file.
type identity struct {
	device, inode              uint64
	length                     int64
	modifiedSec, modifiedNanos int64
	changedSec, changedNanos   int64
}

// identify returns the identity of the file at a path.
func identify(path string) (identity, error) {
	var stat unix.Stat_t
	var err error
	for {
		if err = unix.Stat(path, &stat); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return identity{}, ioError(path, "stat", err)
	}
	modifiedSec, modifiedNanos := stat.Mtim.Unix()
	changedSec, changedNanos := stat.Ctim.Unix()
	return identity{
		device: uint64(stat.Dev), inode: uint64(stat.Ino), length: stat.Size,
		modifiedSec: modifiedSec, modifiedNanos: modifiedNanos,
		changedSec: changedSec, changedNanos: changedNanos,
	}, nil
}
