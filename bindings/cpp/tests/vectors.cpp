// Checks the library with the shared vectors.
//   vectors TESTDATA_SNAPSHOT
// Writes the names of the cases that passed to the file that NUTHATCH_CASES names.
#include "bad_files.hpp"
#include "good_files.hpp"
#include "tables.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <set>
#include <string>

int main(int argc, char **argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: vectors TESTDATA_SNAPSHOT\n"), 2;
    std::filesystem::path folder = argv[1];
    std::set<std::string> passed;
    int failed = 0;
    auto run = [&](const std::string &name, auto check) {
        try {
            check();
            passed.insert(name);
        } catch (const std::exception &error) {
            failed++;
            std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
        }
    };
    check_good_files(folder, run);
    check_bad_files(folder, run);
    check_typed_lookups(folder, run);
    check_hashes(folder, run);
    check_watches(folder, run);
    check_large_file(folder, run);
    if (const char *path = std::getenv("NUTHATCH_CASES")) {
        std::ofstream cases(path);
        for (const auto &name : passed) cases << name << '\n';
    }
    std::printf("%zu cases passed, %d failed\n", passed.size(), failed);
    return failed == 0 && passed.size() > 500 ? 0 : 1;
}
