// Snapshots of Nuthatch for C++17: immutable typed key-value files, mapped by any number of
// processes. A wrapper of nuthatch.h without code of its own to link: link libnuthatch.
//
//   nuthatch::snapshot users("users.nut");
//   if (auto name = users.get_string("user:1.name")) std::cout << *name << '\n';
//
// Errors are exceptions of type nuthatch::error. A missing key is not an error.
#ifndef NUTHATCH_HPP
#define NUTHATCH_HPP

#include "nuthatch/error.hpp"
#include "nuthatch/iterator.hpp"
#include "nuthatch/snapshot.hpp"
#include "nuthatch/value.hpp"
#include "nuthatch/view.hpp"
#include "nuthatch/watch.hpp"
#include "nuthatch/writer.hpp"

#endif
