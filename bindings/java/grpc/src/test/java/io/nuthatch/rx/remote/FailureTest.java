package io.nuthatch.rx.remote;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Metadata;
import io.grpc.Status;
import io.nuthatch.rx.ConditionUnmetException;
import io.nuthatch.rx.StoreException;
import io.nuthatch.rx.StoreUnavailableException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** Statuses as exceptions. */
class FailureTest {

  private static Metadata trailers(String name, String value) {
    var trailers = new Metadata();
    trailers.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value);
    return trailers;
  }

  @Test
  void each_code_of_the_table_is_the_exception_that_it_is_in_the_process() throws IOException {
    var root = Path.of(System.getProperty("nuthatch.root"));
    var lines = Files.readAllLines(root.resolve("testdata/store/statuses.csv"));
    assertEquals("code,number,status", lines.getFirst());
    for (var line : lines.subList(1, lines.size())) {
      var columns = line.split(",");
      var status = Status.fromCodeValue(Integer.parseInt(columns[1])).withDescription("the reason");
      var failure = Failure.of(status, trailers("nuthatch-code", columns[0]));
      assertEquals(columns[0], failure.exception().code());
      assertEquals("the reason", failure.exception().getMessage());
      var local = StoreException.of(columns[0], "the reason");
      assertEquals(local.getClass(), failure.exception().getClass(), line);
      boolean isTransient = columns[2].equals("Unavailable") || columns[0].equals("readers-full");
      assertEquals(isTransient, failure.isTransient(), line);
    }
  }

  @Test
  void a_condition_that_did_not_hold_is_told_with_its_number() {
    var trailers = trailers("nuthatch-code", "condition-unmet");
    trailers.merge(trailers("nuthatch-write", "3"));
    var failure = Failure.of(Status.ABORTED, trailers);
    assertEquals(
        3, assertInstanceOf(ConditionUnmetException.class, failure.exception()).write());
  }

  @Test
  void a_status_alone_is_told_by_what_it_means() {
    var lost = Failure.of(Status.UNAVAILABLE.withCause(new IOException("cut")), new Metadata());
    assertInstanceOf(StoreUnavailableException.class, lost.exception());
    assertEquals("unavailable", lost.exception().code());
    assertEquals("UNAVAILABLE: cut", lost.exception().getMessage());
    var text = "recvAddress(..) failed with error(-104): Connection reset by peer";
    var reset = new IOException(text);
    var problem = Failure.of(Status.UNAVAILABLE.withCause(reset), null).exception().getMessage();
    assertTrue(problem.startsWith("the connection was lost: Connection reset by peer;"), problem);
    assertEquals("deadline", Failure.of(Status.DEADLINE_EXCEEDED, null).exception().code());
    assertEquals("status", Failure.of(Status.UNIMPLEMENTED, null).exception().code());
  }
}
