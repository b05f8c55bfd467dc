// Writes a snapshot and reads it. The argument is the path.
#include <nuthatch.hpp>

#include <iostream>

int main(int argc, char **argv) try {
    if (argc != 2) return 2;
    nuthatch::writer writer(argv[1]);
    writer.insert("user:1.name", "Ada");
    writer.insert("user:1.age", 36);
    writer.finish();
    nuthatch::snapshot users(argv[1]);
    std::cout << *users.get_string("user:1.name") << ' ' << *users.get_i64("user:1.age") << '\n';
} catch (const nuthatch::error &error) {
    std::cerr << error.code() << ": " << error.what() << '\n';
    return 1;
}
