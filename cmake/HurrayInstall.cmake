# What `cmake --install` puts where: libraries, headers, command, CMake package, pkg-config file, man page, completions.
include(CMakePackageConfigHelpers)

install(TARGETS hurray hurray_static EXPORT hurrayTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${PROJECT_BINARY_DIR}/include/hurray/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hurray)
if(TARGET hurray_command)
  install(TARGETS hurray_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/docs/hurray.1)
  install(FILES docs/hurray.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/scripts/completion/hurray.bash)
  install(FILES scripts/completion/hurray.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME hurray)
  install(FILES scripts/completion/_hurray DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
install(FILES LICENSE-APACHE LICENSE-MIT DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The static library's own needs, for static linking through either package.
set(HURRAY_PC_REQUIRES "zlib yajl")
set(HURRAY_PC_LIBS "-lpthread -lm")
if(HWLOC_FOUND)
  string(APPEND HURRAY_PC_REQUIRES " hwloc")
endif()
if(ISAL_FOUND)
  string(APPEND HURRAY_PC_REQUIRES " libisal")
endif()
if(URING_FOUND)
  string(APPEND HURRAY_PC_REQUIRES " liburing")
endif()
if(HURRAY_HAVE_CUDA)
  string(APPEND HURRAY_PC_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
# Wherever `cmake --install --prefix` puts it, pkg-config finds the rest from where hurray.pc lies.
set(HURRAY_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
foreach(folder LIBDIR INCLUDEDIR)
  cmake_path(APPEND HURRAY_PC_${folder} "\${prefix}" "${CMAKE_INSTALL_${folder}}") # an absolute folder stays alone
endforeach()
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH HURRAY_PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  string(REGEX REPLACE "(.*)/$" "\${pcfiledir}/\\1" HURRAY_PC_PREFIX "${HURRAY_PC_PREFIX}")
endif()
configure_file(cmake/hurray.pc.in ${PROJECT_BINARY_DIR}/hurray.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hurray.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT hurrayTargets NAMESPACE hurray:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hurray)
configure_package_config_file(cmake/hurrayConfig.cmake.in ${PROJECT_BINARY_DIR}/hurrayConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hurray)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hurrayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hurrayConfig.cmake ${PROJECT_BINARY_DIR}/hurrayConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hurray)
