/** Streams for local and remote stores, some of which wait for demand on a thread of their own. */
package io.nuthatch.rx.flow;
