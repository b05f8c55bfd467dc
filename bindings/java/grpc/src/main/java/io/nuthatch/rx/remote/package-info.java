/** The store of another machine, over gRPC. */
package io.nuthatch.rx.remote;
