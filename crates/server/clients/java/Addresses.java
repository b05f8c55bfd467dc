/** Where the server listens, as scripts/clients hands it on. */
final class Addresses {
    private Addresses() {}

    static String of(String name) {
        String address = System.getenv(name);
        if (address == null) {
            throw new IllegalStateException(
                    "expected an address in " + name + ": run scripts/clients java");
        }
        return address;
    }

    static String host(String name) {
        String address = of(name);
        return address.substring(0, address.lastIndexOf(':'));
    }

    static int port(String name) {
        String address = of(name);
        return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
    }
}
