/** Streams that wait on a thread of their own, for stores of any place. */
package io.nuthatch.rx.flow;
