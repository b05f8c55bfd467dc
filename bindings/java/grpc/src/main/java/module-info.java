/** Remote stores for {@code io.nuthatch.rx}, over gRPC. Exports no packages. */
module io.nuthatch.rx.grpc {
  requires com.google.common;
  requires com.google.protobuf;
  requires io.grpc;
  requires io.grpc.netty.shaded;
  requires io.grpc.protobuf;
  requires io.grpc.stub;
  requires io.nuthatch.rx;

  provides io.nuthatch.rx.spi.Connector with
      io.nuthatch.rx.remote.GrpcConnector;
}
