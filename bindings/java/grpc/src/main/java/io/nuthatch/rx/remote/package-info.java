/** The remote store, over gRPC. */
package io.nuthatch.rx.remote;
