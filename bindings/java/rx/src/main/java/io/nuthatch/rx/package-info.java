/**
 * Ordered tables of keys and values, as reactive streams.
 *
 * <p>{@link Store#open} opens a folder of this machine, {@link Store#connect} connects to a store
 * that {@code nuthatch store serve} serves. Both have the same interface.
 *
 * <ul>
 *   <li>A call does nothing before its result is subscribed to. Each subscription executes it
 *       again.
 *   <li>A stream reads as its subscriber requests items, and a bounded number ahead.
 *   <li>Cancelling ends the transaction of a stream. Closing the store fails streams in progress
 *       with {@link StoreClosedException}.
 *   <li>All failures are {@link StoreException}s.
 *   <li>A missing key is not an error: its lookup is empty.
 *   <li>Byte arrays that are passed to a call must not be changed before the call has completed.
 *       Returned byte arrays belong to the caller.
 * </ul>
 *
 * <p>All streams are those of RxJava 3, and so publishers of Reactive Streams: Reactor accepts them
 * with {@code Flux.from}. {@link Publishers} converts them for {@link java.util.concurrent.Flow}.
 */
package io.nuthatch.rx;
