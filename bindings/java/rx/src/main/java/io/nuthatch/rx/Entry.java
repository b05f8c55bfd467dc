package io.nuthatch.rx;

import java.time.Instant;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * A value with its metadata.
 *
 * @param value the value
 * @param version the sequence number of the change that wrote it; empty in a plain table
 * @param expiresAt the time of expiry; empty if the row does not expire
 */
public record Entry(byte[] value, OptionalLong version, Optional<Instant> expiresAt) {}
