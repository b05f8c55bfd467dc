# The CMake package of Nuthatch: find_package(nuthatch) defines nuthatch::nuthatch, the shared
# library, and nuthatch::static. Both have nuthatch.h and, for C++17, nuthatch.hpp.
get_filename_component(_nuthatch_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET nuthatch::nuthatch)
  add_library(nuthatch::nuthatch SHARED IMPORTED)
  set_target_properties(nuthatch::nuthatch PROPERTIES
    IMPORTED_LOCATION "${_nuthatch_prefix}/@lib@/libnuthatch@suffix@"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_nuthatch_prefix}/include")
endif()

if(NOT TARGET nuthatch::static AND EXISTS "${_nuthatch_prefix}/@lib@/libnuthatch.a")
  find_package(Threads REQUIRED)
  add_library(nuthatch::static STATIC IMPORTED)
  set_target_properties(nuthatch::static PROPERTIES
    IMPORTED_LOCATION "${_nuthatch_prefix}/@lib@/libnuthatch.a"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;m;${CMAKE_DL_LIBS}"
    INTERFACE_INCLUDE_DIRECTORIES "${_nuthatch_prefix}/include")
endif()

unset(_nuthatch_prefix)
