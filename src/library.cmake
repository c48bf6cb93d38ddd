# What C++ programs link: libforebay.so, of which the symbols of include/forebay alone are seen, and
# its CMake package. find_package(forebay), target forebay::forebay.
include(CMakePackageConfigHelpers)

add_library(forebay_library SHARED $<TARGET_OBJECTS:forebay_engine>)
target_link_libraries(forebay_library PRIVATE forebay_engine)
target_include_directories(forebay_library INTERFACE $<INSTALL_INTERFACE:include>)
target_compile_features(forebay_library INTERFACE cxx_std_23)
set_target_properties(forebay_library PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME forebay
  EXPORT_NAME forebay VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

set(package_dir lib/cmake/forebay)
install(TARGETS forebay_library EXPORT forebayTargets COMPONENT cpp LIBRARY DESTINATION lib)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/forebay DESTINATION include COMPONENT cpp
  FILES_MATCHING PATTERN "*.h")
install(EXPORT forebayTargets NAMESPACE forebay:: DESTINATION ${package_dir} COMPONENT cpp)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/forebayConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/forebayConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/forebayConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/forebayConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/forebayConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT cpp)
