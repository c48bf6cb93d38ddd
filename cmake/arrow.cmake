# Arrow C++ of the pyarrow of the build's Python: ARROW_DIR (empty: there is none), ARROW_VERSION,
# ARROW_FILE and PARQUET_FILE, its libraries' names.
set(FOREBAY_PYARROW_DIR "" CACHE PATH "Where pyarrow is; empty: where the build's Python has it")
set(ARROW_DIR ${FOREBAY_PYARROW_DIR})
if(NOT ARROW_DIR AND Python_EXECUTABLE)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "from importlib.util import find_spec; \
print(*(find_spec('pyarrow') or find_spec('sys')).submodule_search_locations or [''], end='')"
    OUTPUT_VARIABLE ARROW_DIR ERROR_QUIET)
endif()
if(ARROW_DIR)
  file(GLOB arrow_library ${ARROW_DIR}/libarrow.so.*)
  file(GLOB parquet_library ${ARROW_DIR}/libparquet.so.*)
  if(NOT arrow_library OR NOT parquet_library)
    set(ARROW_DIR)
  endif()
endif()

if(ARROW_DIR)
  file(STRINGS ${ARROW_DIR}/include/arrow/util/config.h version REGEX "ARROW_VERSION_STRING")
  string(REGEX REPLACE ".*\"([0-9.]+)[^\"]*\".*" "\\1" ARROW_VERSION "${version}")
  get_filename_component(ARROW_FILE ${arrow_library} NAME)
  get_filename_component(PARQUET_FILE ${parquet_library} NAME)
  message(STATUS "Parquet: by Arrow ${ARROW_VERSION} of ${ARROW_DIR}")
else()
  set(ARROW_VERSION 25.0.0)  # as in tools/requirements/build.txt
  set(ARROW_FILE libarrow.so.2500)
  set(PARQUET_FILE libparquet.so.2500)
  message(STATUS "Parquet is left out: no pyarrow in the build's Python (tools/setup.sh build)")
endif()

# What tools/setup.sh installs later is found then.
if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/installed/build.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/.venv/installed/build.txt)
endif()
