# Libraries that the project is made of. Each is found through pkg-config or CMake; nothing is downloaded.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(YAJL REQUIRED IMPORTED_TARGET yajl)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)      # header only

# hurray_optional(NAME module): AUTO takes the library when it is there, ON demands it, OFF builds without it.
macro(hurray_optional name module)
  set(HURRAY_${name} AUTO CACHE STRING "${module}: AUTO (when it is found), ON, OFF")
  set_property(CACHE HURRAY_${name} PROPERTY STRINGS AUTO ON OFF)
  set(${name}_FOUND OFF)
  if(HURRAY_${name} STREQUAL "ON")
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
  elseif(NOT HURRAY_${name} STREQUAL "OFF")
    pkg_check_modules(${name} IMPORTED_TARGET ${module})
  endif()
endmacro()
hurray_optional(HWLOC hwloc)    # without it memory and threads are bound to no node
hurray_optional(URING liburing) # without it the loader reads with threads
hurray_optional(ISAL libisal)   # without it CRC-32C is the portable one

set(HURRAY_HAVE_CUDA OFF)
if(NOT HURRAY_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND AND TARGET CUDA::cudart_static)
    set(HURRAY_HAVE_CUDA ON)
  elseif(HURRAY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HURRAY_CUDA=ON, but no CUDA toolkit with cudart_static was found")
  endif()
endif()
message(STATUS "hurray: CUDA ${HURRAY_HAVE_CUDA}, hwloc ${HWLOC_FOUND}, io_uring ${URING_FOUND}, ISA-L ${ISAL_FOUND}")
