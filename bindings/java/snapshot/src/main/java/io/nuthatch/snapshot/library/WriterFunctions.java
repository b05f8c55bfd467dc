package io.nuthatch.snapshot.library;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.TreeMap;

/**
 * The functions {@code nuthatch_snapshot_writer_*} of {@code nuthatch.h}. Each method has the name
 * of its function, and throws the function's error as an exception.
 */
public final class WriterFunctions {

  /** The struct {@code nuthatch_snapshot_writer_options}. */
  public static final StructLayout OPTIONS =
      MemoryLayout.structLayout(
              JAVA_INT.withName("on_duplicate"),
              JAVA_INT.withName("compression"),
              JAVA_INT.withName("compression_level"),
              JAVA_INT.withName("threads"),
              JAVA_LONG.withName("memory_bytes"),
              JAVA_LONG.withName("seed"),
              JAVA_INT.withName("shards"),
              JAVA_INT.withName("reserved"))
          .withName("nuthatch_snapshot_writer_options");

  /** The struct {@code nuthatch_snapshot_summary}. */
  public static final StructLayout SUMMARY =
      MemoryLayout.structLayout(
              JAVA_LONG.withName("entries"),
              JAVA_LONG.withName("rows"),
              JAVA_LONG.withName("file_bytes"),
              JAVA_LONG.withName("key_bytes"),
              JAVA_LONG.withName("value_bytes"),
              JAVA_LONG.withName("stored_value_bytes"))
          .withName("nuthatch_snapshot_summary");

  static final StructLayout ERROR =
      MemoryLayout.structLayout(
              JAVA_INT.withName("code"),
              JAVA_INT.withName("system"),
              JAVA_LONG.withName("position"),
              MemoryLayout.sequenceLayout(488, JAVA_BYTE).withName("message"))
          .withName("nuthatch_error");

  /** The called functions, by their names in the header; a test compares them. */
  static final Map<String, FunctionDescriptor> SIGNATURES = new TreeMap<>();

  private static final long MESSAGE = ERROR.byteOffset(PathElement.groupElement("message"));
  private static final Linker LINKER = Linker.nativeLinker();
  private static final SymbolLookup LIBRARY = NativeLibrary.load();
  private static final MethodHandle CODE_NAME =
      link("nuthatch_code_name", FunctionDescriptor.of(ADDRESS, JAVA_INT));
  private static final MethodHandle CREATE =
      function("create", ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle INSERT_ROWS =
      function("insert_rows", JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS);
  private static final MethodHandle SET_METADATA =
      function("set_metadata", JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG, ADDRESS);
  private static final MethodHandle FINISH = function("finish", JAVA_LONG, ADDRESS, ADDRESS);
  private static final MethodHandle ABANDON = function("abandon", JAVA_LONG, ADDRESS);

  private WriterFunctions() {}

  private static MethodHandle function(String name, MemoryLayout... parameters) {
    return link("nuthatch_snapshot_writer_" + name, FunctionDescriptor.of(JAVA_INT, parameters));
  }

  private static MethodHandle link(String name, FunctionDescriptor signature) {
    SIGNATURES.put(name, signature);
    var address =
        LIBRARY
            .find(name)
            .orElseThrow(
                () -> new UnsatisfiedLinkError("libnuthatch: expected " + name + ", found none"));
    return LINKER.downcallHandle(address, signature);
  }

  /** A call of the library that returns an error code. */
  private interface Call {
    int run(MemorySegment error) throws Throwable;
  }

  private static void call(Call call) throws LibraryException {
    try (var arena = Arena.ofConfined()) {
      var error = arena.allocate(ERROR);
      int code = call.run(error);
      if (code != 0) {
        throw new LibraryException(codeName(code), error.getString(MESSAGE));
      }
    } catch (LibraryException | RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      throw new AssertionError("functions of the library throw nothing", e);
    }
  }

  private static String codeName(int code) throws Throwable {
    var name = (MemorySegment) CODE_NAME.invokeExact(code);
    return name.reinterpret(Long.MAX_VALUE).getString(0);
  }

  /**
   * Starts a snapshot.
   *
   * @param path the path, in UTF-8
   * @param options a struct {@link #OPTIONS}
   * @return the handle of the writer
   * @throws LibraryException if the function fails
   */
  public static long create(byte[] path, MemorySegment options) throws LibraryException {
    try (var arena = Arena.ofConfined()) {
      var bytes = arena.allocateFrom(JAVA_BYTE, path);
      var writer = arena.allocate(JAVA_LONG);
      call(e -> (int) CREATE.invokeExact(bytes, (long) path.length, options, writer, e));
      return writer.get(JAVA_LONG, 0);
    }
  }

  /**
   * Adds packed rows.
   *
   * @param writer the handle
   * @param rows the rows, in native memory
   * @throws LibraryException if the function fails
   */
  public static void insertRows(long writer, MemorySegment rows) throws LibraryException {
    call(e -> (int) INSERT_ROWS.invokeExact(writer, rows, rows.byteSize(), e));
  }

  /**
   * Sets a value of the metadata.
   *
   * @param writer the handle
   * @param name the name, in UTF-8
   * @param value the value
   * @throws LibraryException if the function fails
   */
  public static void setMetadata(long writer, byte[] name, byte[] value) throws LibraryException {
    try (var arena = Arena.ofConfined()) {
      var nameBytes = arena.allocateFrom(JAVA_BYTE, name);
      var valueBytes = arena.allocateFrom(JAVA_BYTE, value);
      call(
          e ->
              (int)
                  SET_METADATA.invokeExact(
                      writer, nameBytes, (long) name.length, valueBytes, (long) value.length, e));
    }
  }

  /**
   * Publishes the snapshot and closes the handle, also if it fails.
   *
   * @param writer the handle
   * @param summary a struct {@link #SUMMARY} that receives the result
   * @throws LibraryException if the function fails
   */
  public static void finish(long writer, MemorySegment summary) throws LibraryException {
    call(e -> (int) FINISH.invokeExact(writer, summary, e));
  }

  /**
   * Abandons the snapshot and closes the handle.
   *
   * @param writer the handle
   * @throws LibraryException if the function fails
   */
  public static void abandon(long writer) throws LibraryException {
    call(e -> (int) ABANDON.invokeExact(writer, e));
  }
}
