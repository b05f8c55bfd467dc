package io.nuthatch.snapshot;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.nuthatch.snapshot.hash.Xxh3;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.Objects;

/**
 * An open snapshot: an immutable file of keys and typed values, or a set of such files. {@link
 * #open} maps it into memory, and lookups read it in place.
 *
 * <p>Opening checks headers and dictionaries, lookups check the bytes that they read, and {@link
 * #verify} checks every byte. Any number of threads can use a snapshot at once. Lookups take no
 * lock and write to no shared memory, except that those of compressed values share contexts for
 * decompression.
 *
 * <p>Lookups throw {@link SnapshotException} with the code {@code corrupt} for damaged bytes and
 * {@code unreadable} for a page that cannot be read, and {@link SnapshotClosedException} after
 * {@link #close}. {@link #path}, {@link #size} and {@link #stats} can be called after {@link
 * #close}.
 *
 * <p>A key is text, which stands for its UTF-8, or bytes. The bytes must not be changed during the
 * call. Text with an unpaired surrogate has no UTF-8, so it is a missing key.
 */
public final class Snapshot extends TypedLookups implements AutoCloseable, Iterable<Entry> {

  /** The file, or {@code null} for a set. */
  final SnapshotFile single;

  private final SnapshotFile[] files;
  private final Path path;
  private final Arena arena;

  /** The manifest of a set, or {@code null}. */
  private final Manifest manifest;

  private final long seed;

  Snapshot(Path path, Arena arena, SnapshotFile[] files, Manifest manifest) {
    this.path = path;
    this.arena = arena;
    this.files = files;
    this.manifest = manifest;
    this.single = manifest == null ? files[0] : null;
    this.seed = files[0].header.seed;
  }

  /**
   * Opens a snapshot with the default options.
   *
   * @param path the file, or the manifest of a set
   * @return the snapshot
   * @throws SnapshotException with the code {@code io}, {@code not-a-snapshot}, {@code
   *     unsupported}, {@code corrupt} or {@code unreadable}
   */
  public static Snapshot open(Path path) {
    return open(path, OpenOptions.defaults());
  }

  /**
   * Opens a snapshot. Checks headers and dictionaries only, so the time does not depend on the size
   * of the files, unless an option makes it read all of them.
   *
   * @param path the file, or the manifest of a set
   * @param options the options
   * @return the snapshot
   * @throws SnapshotException with the code {@code io}, {@code not-a-snapshot}, {@code
   *     unsupported}, {@code corrupt} or {@code unreadable}
   */
  public static Snapshot open(Path path, OpenOptions options) {
    return Opening.open(path, options);
  }

  /**
   * Returns the path that the snapshot was opened with.
   *
   * @return the path
   */
  public Path path() {
    return path;
  }

  /**
   * Finds the value of a key. Allocates nothing after the first lookups with a view. Does not read
   * the value: the methods of the view check its type and its bytes.
   *
   * @param key the key
   * @param view set to the value; without a value for a missing key
   * @return whether the key exists
   */
  public boolean find(byte[] key, ValueView view) {
    return find(key, key.length, view);
  }

  /**
   * Finds the value of a key at the start of an array, as {@link #find(byte[], ValueView)} does.
   *
   * @param key the array that begins with the key
   * @param length length of the key in bytes
   * @param view set to the value; without a value for a missing key
   * @return whether the key exists
   * @throws IndexOutOfBoundsException if the array is shorter than the key
   */
  public boolean find(byte[] key, int length, ValueView view) {
    Objects.checkFromIndexSize(0, length, key.length);
    long hash = hash(key, length);
    var file = fileOf(hash);
    try {
      if (file.find(key, length, hash, view)) {
        return true;
      }
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
    view.clear();
    return false;
  }

  /**
   * Finds the value of a key, as {@link #find(byte[], ValueView)} does. Copies the key to an array
   * of the view; a key of more than 255 bytes that is longer than all before needs a new array.
   *
   * @param key the segment whose bytes are the key
   * @param view set to the value; without a value for a missing key
   * @return whether the key exists
   */
  public boolean find(MemorySegment key, ValueView view) {
    if (key.byteSize() > Layout.MAX_KEY) {
      view.clear();
      return false;
    }
    int length = (int) key.byteSize();
    var copy = view.keyBuffer(length);
    MemorySegment.copy(key, JAVA_BYTE, 0, copy, 0, length);
    return find(copy, length, view);
  }

  /**
   * Finds the values of many keys: sets {@code views[i]} to the value of {@code keys[i]}. Faster
   * than one lookup for each key, because the accesses to memory overlap. Allocates some arrays for
   * each call, but nothing for each key.
   *
   * @param keys the keys
   * @param views the views, at least as many as keys, none of them twice
   * @throws IndexOutOfBoundsException if there are fewer views than keys
   */
  public void findMany(byte[][] keys, ValueView[] views) {
    Objects.checkFromIndexSize(0, keys.length, views.length);
    try {
      new ManyLookups(this).find(keys, views);
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, files[0]);
    }
  }

  /**
   * Returns the values of many keys, as {@link #findMany} finds them.
   *
   * @param keys the keys
   * @return the value of each key, or {@code null} for a missing key
   */
  public Value[] getMany(byte[][] keys) {
    var views = views(keys);
    var values = new Value[keys.length];
    for (int i = 0; i < keys.length; i++) {
      values[i] = views[i].isPresent() ? views[i].asValue() : null;
    }
    return values;
  }

  /**
   * Returns the strings of many keys, as {@link #findMany} finds them.
   *
   * @param keys the keys
   * @return the string of each key, or {@code null} for a missing key
   * @throws SnapshotException with the code {@code wrong-type} if a value is not a string
   */
  public String[] getManyStrings(byte[][] keys) {
    var views = views(keys);
    var strings = new String[keys.length];
    for (int i = 0; i < keys.length; i++) {
      strings[i] = views[i].isPresent() ? views[i].asString() : null;
    }
    return strings;
  }

  private ValueView[] views(byte[][] keys) {
    var views = new ValueView[keys.length];
    Arrays.setAll(views, i -> ValueView.forOneLookup());
    findMany(keys, views);
    return views;
  }

  /**
   * Returns the value of a key.
   *
   * @param key the key
   * @return a copy of the value, or {@code null} for a missing key
   */
  public Value get(byte[] key) {
    var view = view(key);
    return view == null ? null : view.asValue();
  }

  /**
   * Returns the value of a key.
   *
   * @param key the key
   * @return a copy of the value, or {@code null} for a missing key
   */
  public Value get(String key) {
    var bytes = Utf8.key(key);
    return bytes == null ? null : get(bytes);
  }

  /**
   * Returns the value of a key.
   *
   * @param key the segment whose bytes are the key
   * @return a copy of the value, or {@code null} for a missing key
   */
  public Value get(MemorySegment key) {
    var view = ValueView.forOneLookup();
    return find(key, view) ? view.asValue() : null;
  }

  /**
   * Returns whether a key exists.
   *
   * @param key the key
   * @return whether it exists
   */
  public boolean contains(byte[] key) {
    return view(key) != null;
  }

  /**
   * Returns whether a key exists.
   *
   * @param key the key
   * @return whether it exists
   */
  public boolean contains(String key) {
    var bytes = Utf8.key(key);
    return bytes != null && contains(bytes);
  }

  /**
   * Returns the type of the value of a key.
   *
   * @param key the key
   * @return the type, or {@code null} for a missing key
   */
  public ValueType typeOf(byte[] key) {
    var view = view(key);
    return view == null ? null : view.type();
  }

  /**
   * Returns the type of the value of a key.
   *
   * @param key the key
   * @return the type, or {@code null} for a missing key
   */
  public ValueType typeOf(String key) {
    var bytes = Utf8.key(key);
    return bytes == null ? null : typeOf(bytes);
  }

  /**
   * Returns the bytes of a value in place, as {@link ValueView#segment} describes them.
   *
   * @param key the key
   * @return the segment, or {@code null} for a missing key
   */
  public MemorySegment getSegment(byte[] key) {
    var view = view(key);
    return view == null ? null : view.segment();
  }

  /**
   * Returns a list of integers in place. The buffer is read-only. After {@link #close}, an access
   * to it throws {@link IllegalStateException}. That of a compressed value is a copy, which stays
   * valid.
   *
   * @param key the key
   * @return the elements, or {@code null} for a missing key
   * @throws SnapshotException with the code {@code wrong-type} for another type, or {@code
   *     unsupported} for a list of more than 2^31 bytes, which {@link #getSegment} returns
   */
  public LongBuffer getLongBuffer(byte[] key) {
    var view = view(key);
    return view == null ? null : view.buffer(ValueType.I64_LIST).asLongBuffer();
  }

  /**
   * Returns a list of floating-point numbers of 64 bits in place, as {@link #getLongBuffer} does.
   *
   * @param key the key
   * @return the elements, or {@code null} for a missing key
   */
  public DoubleBuffer getDoubleBuffer(byte[] key) {
    var view = view(key);
    return view == null ? null : view.buffer(ValueType.F64_LIST).asDoubleBuffer();
  }

  /**
   * Returns a list of floating-point numbers of 32 bits in place, as {@link #getLongBuffer} does.
   *
   * @param key the key
   * @return the elements, or {@code null} for a missing key
   */
  public FloatBuffer getFloatBuffer(byte[] key) {
    var view = view(key);
    return view == null ? null : view.buffer(ValueType.F32_LIST).asFloatBuffer();
  }

  /**
   * Returns the number of entries.
   *
   * @return the number
   */
  public long size() {
    return Arrays.stream(files).mapToLong(file -> file.header.entries).sum();
  }

  /**
   * Returns the statistics of the snapshot. Reads headers only.
   *
   * @return the statistics
   */
  public Stats stats() {
    return Stats.of(files, manifest == null ? 0 : files.length);
  }

  /**
   * Returns the metadata that the writer was given: names with values, in ascending order of the
   * names.
   *
   * @return the metadata; the map cannot be changed, and its arrays belong to the caller
   * @throws SnapshotException with the code {@code corrupt} or {@code unreadable}
   */
  public Map<String, byte[]> metadata() {
    if (manifest != null) {
      var section = manifest.metadata();
      int from = (int) section.offset();
      var bytes = Arrays.copyOfRange(manifest.bytes(), from, manifest.bytes().length);
      return Metadata.decode(bytes, path, from);
    }
    try {
      return single.metadata();
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, single);
    }
  }

  /**
   * Verifies every byte: checksums, offsets, values, and that a lookup finds every entry. After
   * that, no lookup finds damage unless the file changes. Runs on the calling thread alone.
   *
   * @throws SnapshotException with the code {@code corrupt} for the first contradiction to the
   *     format, or {@code unreadable}
   */
  public void verify() {
    if (manifest != null) {
      metadata();
    }
    for (var file : files) {
      try {
        Verification.run(file);
      } catch (IllegalStateException | InternalError e) {
        throw Failures.of(e, file);
      }
    }
  }

  /**
   * Returns a cursor over all entries. The order follows from the hashes of the keys: it is the
   * same each time, and unrelated to the order of the keys.
   *
   * @return a cursor before the first entry
   */
  public Cursor cursor() {
    return new Cursor(files);
  }

  /**
   * Returns an iterator over copies of all entries, in the order of {@link #cursor}. It throws the
   * exceptions of {@link Cursor#next}, and then continues with the entry after the damaged one.
   *
   * @return the iterator
   */
  @Override
  public Iterator<Entry> iterator() {
    return new EntryIterator(cursor());
  }

  /**
   * Unmaps the file. Lookups of other threads then throw {@link SnapshotClosedException}, and so do
   * reads by views; accesses to segments and buffers throw {@link IllegalStateException}. Further
   * calls have no effect. Do not call this for a snapshot of a {@link Watch}, which closes it.
   *
   * <p>If a system call of another thread is using a segment or a buffer at this moment, such as a
   * write to a socket, the file is unmapped after that call.
   */
  @Override
  public void close() {
    Closing.close(arena);
  }

  long hash(byte[] key, int length) {
    return Xxh3.hash(key, length, seed);
  }

  private SnapshotFile fileOf(long hash) {
    return single != null ? single : shardOf(hash);
  }

  SnapshotFile shardOf(long hash) {
    return files[SnapshotFile.shard(hash, files.length)];
  }

  @Override
  String readString(byte[] key) {
    long hash = hash(key, key.length);
    var file = fileOf(hash);
    try {
      return file.readString(key, key.length, hash);
    } catch (IllegalStateException | InternalError e) {
      throw Failures.of(e, file);
    }
  }

  @Override
  ValueView view(byte[] key) {
    var view = ValueView.forOneLookup();
    return find(key, key.length, view) ? view : null;
  }
}
