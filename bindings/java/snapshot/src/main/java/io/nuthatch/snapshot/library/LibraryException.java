package io.nuthatch.snapshot.library;

/** A function of the library failed. */
public final class LibraryException extends Exception {

  private static final long serialVersionUID = 1L;

  private final String code;

  LibraryException(String code, String message) {
    super(message);
    this.code = code;
  }

  /**
   * Returns the short name of the error.
   *
   * @return the code
   */
  public String code() {
    return code;
  }
}
