/**
 * Ordered tables of keys and values, as reactive streams.
 *
 * <p>{@link Store#open} opens a folder of this machine, {@link Store#connect} a store that
 * {@code nuthatch store serve} serves; what they answer is used in the same way.
 *
 * <ul>
 *   <li>Nothing runs before it is subscribed to, and each subscription runs anew.
 *   <li>A stream reads as its subscriber asks for rows, and a bounded number ahead.
 *   <li>Cancelling ends a stream's transaction at once. Closing the store fails streams that run,
 *       with {@link StoreClosedException}.
 *   <li>Whatever fails, fails with a {@link StoreException}.
 *   <li>A missing key is no error: lookups are then empty.
 *   <li>Byte arrays that are handed over must not be changed before the call has its answer. Those
 *       that are handed out belong to the caller.
 * </ul>
 *
 * <p>All streams are those of RxJava 3, and so publishers of Reactive Streams: Reactor takes them
 * with {@code Flux.from}, and {@link Publishers} has adapters for {@link
 * java.util.concurrent.Flow}.
 */
package io.nuthatch.rx;
