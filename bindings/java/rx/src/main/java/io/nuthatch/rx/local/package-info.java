/** The store of this machine: the native library, called through the foreign-function interface. */
package io.nuthatch.rx.local;
