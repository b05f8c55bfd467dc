/** The functions of {@code nuthatch.h} that write snapshots. */
package io.nuthatch.snapshot.library;
