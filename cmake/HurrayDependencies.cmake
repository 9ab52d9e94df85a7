# Libraries that the project is made of. Each is found through pkg-config or CMake; nothing is downloaded.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC IMPORTED_TARGET hwloc)    # optional: without it memory and threads are bound to no node
pkg_check_modules(YAJL REQUIRED IMPORTED_TARGET yajl)
pkg_check_modules(URING IMPORTED_TARGET liburing)   # optional: without it the loader reads with threads
pkg_check_modules(ISAL IMPORTED_TARGET libisal)     # optional: without it CRC-32C is the portable one
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)      # header only

set(HURRAY_HAVE_CUDA OFF)
if(NOT HURRAY_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND TARGET CUDA::cudart_static)
    set(HURRAY_HAVE_CUDA ON)
  elseif(HURRAY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HURRAY_CUDA=ON, but no CUDA toolkit with cudart_static was found")
  endif()
endif()
message(STATUS "hurray: CUDA ${HURRAY_HAVE_CUDA}, io_uring ${URING_FOUND}, ISA-L ${ISAL_FOUND}")
