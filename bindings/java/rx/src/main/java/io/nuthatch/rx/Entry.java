package io.nuthatch.rx;

import java.time.Instant;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A value with what a stamped table keeps about it.
 *
 * @param value the value
 * @param version the number of the change that wrote it; empty in a plain table
 * @param expiresAt when it expires; empty for never
 */
public record Entry(byte[] value, OptionalLong version, Optional<Instant> expiresAt) {}
