/**
 * The ordered store of Nuthatch for RxJava: in the process, or over gRPC, by the same interface.
 *
 * <p>{@link io.nuthatch.rx.Store} is where to begin.
 */
module io.nuthatch.rx {
  requires transitive io.reactivex.rxjava3;
  requires transitive org.reactivestreams;

  exports io.nuthatch.rx;
  exports io.nuthatch.rx.spi;
  exports io.nuthatch.rx.flow to
      io.nuthatch.rx.grpc;

  uses io.nuthatch.rx.spi.Connector;
}
