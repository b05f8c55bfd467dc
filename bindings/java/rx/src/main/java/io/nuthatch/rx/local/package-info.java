/** The local store: calls the native library through the foreign-function interface. */
package io.nuthatch.rx.local;
