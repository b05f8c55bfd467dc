package io.nuthatch.rx.remote;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.lang.module.ModuleFinder;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The libraries as modules, as users of modules have them. */
class ModulesTest {

  private static final String LIBRARIES =
      ".*(rx|grpc|target.java|reactive|protobuf|guava|perfmark).*";

  @Test
  void a_store_is_connected_to_by_the_module_that_provides_it() throws Exception {
    var files =
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(file -> !file.contains("test-classes") && !file.endsWith("-tests.jar"))
            .filter(file -> file.matches(LIBRARIES))
            .map(Path::of)
            .toArray(Path[]::new);
    var boot = ModuleLayer.boot();
    var configuration =
        boot.configuration()
            .resolveAndBind(ModuleFinder.of(files), ModuleFinder.of(), Set.of("io.nuthatch.rx"));
    var layer =
        boot.defineModulesWithOneLoader(configuration, ClassLoader.getPlatformClassLoader());
    assertTrue(layer.findModule("io.nuthatch.rx.grpc").isPresent());
    var store = layer.findLoader("io.nuthatch.rx").loadClass("io.nuthatch.rx.Store");
    try (var connected =
        (AutoCloseable) store.getMethod("connect", String.class).invoke(null, "grpc://localhost")) {
      var module = connected.getClass().getModule();
      assertEquals("io.nuthatch.rx.grpc", module.getName());
      assertEquals(Set.of(), module.getDescriptor().exports());
    }
  }
}
