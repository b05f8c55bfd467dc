/** What a library provides that connects to stores of other machines. */
package io.nuthatch.rx.spi;
