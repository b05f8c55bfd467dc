/** XXH3-64, the hash of keys and the checksum of snapshots. */
package io.nuthatch.snapshot.hash;
