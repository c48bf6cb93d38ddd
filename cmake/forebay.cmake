# Compiler flags, and the two functions every folder uses.

# Line tables are enough for a stack; full debug information makes the build a quarter longer.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

add_library(forebay_flags INTERFACE)
target_include_directories(forebay_flags INTERFACE ${CMAKE_SOURCE_DIR}/include
  ${CMAKE_SOURCE_DIR}/src)
target_compile_options(forebay_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror
  -Wno-missing-field-initializers  # designated initialisers leave defaults on purpose
  -fno-omit-frame-pointer)
target_compile_definitions(forebay_flags INTERFACE _FILE_OFFSET_BITS=64
  FOREBAY_VERSION="${PROJECT_VERSION}")
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(forebay_flags INTERFACE -Wthread-safety)
else()
  # g++ 12 and 14 report false positives inside libstdc++ with these.
  target_compile_options(forebay_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(forebay_flags INTERFACE -Wno-dangling-reference)
  endif()
endif()
if(FOREBAY_SANITIZE)
  target_compile_options(forebay_flags INTERFACE -fsanitize=${FOREBAY_SANITIZE}
    -fno-sanitize-recover=all)
  if(FOREBAY_SANITIZE MATCHES "undefined" AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # A check at every use of a pointer, which doubles g++'s time: ASan finds null and bounds by
    # itself, and alignment is clang's to check (build it with CMAKE_CXX_COMPILER=clang++-19).
    target_compile_options(forebay_flags INTERFACE -fno-sanitize=null,object-size,vptr,alignment)
  endif()
  target_link_options(forebay_flags INTERFACE -fsanitize=${FOREBAY_SANITIZE})
endif()
if(FOREBAY_FUZZ)
  target_compile_options(forebay_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_link_libraries(forebay_flags INTERFACE Threads::Threads)
find_program(FOREBAY_MOLD mold)
if(FOREBAY_MOLD)
  target_link_options(forebay_flags INTERFACE -fuse-ld=mold)
endif()

# forebay_stable_sort(a.cc ...): those call std::stable_sort, in which libstdc++ 12 uses a function
# that it marks as deprecated itself; clang tells the caller.
function(forebay_stable_sort)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -Wno-deprecated-declarations)
  endif()
endfunction()

# The layer table is the one list of modules and of what each may use.
file(STRINGS ${CMAKE_SOURCE_DIR}/tools/layers.txt FOREBAY_LAYER_LINES REGEX "^[a-z]+:")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/layers.txt)

# forebay_module(NAME SOURCES a.cc ... [LINK lib ...]): the static library forebay_NAME of one
# folder under src/, linked against what tools/layers.txt allows it to use and that exists.
function(forebay_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(forebay_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(forebay_${name} PUBLIC forebay_flags)
  foreach(line IN LISTS FOREBAY_LAYER_LINES)
    if(line MATCHES "^${name}:(.*)$")
      separate_arguments(uses UNIX_COMMAND "${CMAKE_MATCH_1}")
      foreach(use IN LISTS uses)
        if(TARGET forebay_${use})
          target_link_libraries(forebay_${name} PUBLIC forebay_${use})
        endif()
      endforeach()
    endif()
  endforeach()
  target_link_libraries(forebay_${name} PRIVATE ${ARG_LINK})
endfunction()

# The S3 server that component tests start (tools/setup.sh test installs it).
find_program(FOREBAY_WEED weed HINTS ${CMAKE_SOURCE_DIR}/.venv/bin)
find_program(FOREBAY_MINISTACK ministack HINTS ${CMAKE_SOURCE_DIR}/.venv/bin)
add_custom_target(forebay_asan_tests)
add_custom_target(forebay_tsan_tests)

# forebay_test(NAME SOURCES a_test.cc ... [LINK lib ...] [TIMEOUT s] [THREADS] [SLOW] [NEEDS_WEED]
# [ARGS ...]): one gtest executable, run by `make test` as it is and again by `make asan`.
#   THREADS     its classes are used from several threads: `make tsan` runs it too
#   SLOW        too slow under a sanitizer: only the release build runs it
#   NEEDS_WEED  starts the S3 server, whose path it finds in $FOREBAY_WEED
# In every test's environment: FOREBAY_WEED, FOREBAY_MINISTACK, and FOREBAY_FAULTS, the fault server
# of this build.
function(forebay_test name)
  if(NOT FOREBAY_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "THREADS;SLOW;NEEDS_WEED" "TIMEOUT" "SOURCES;LINK;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)  # of a machine that many share; nothing here waits that long by itself
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} forebay_flags forebay_gtest)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  set(labels)
  if(NOT ARG_SLOW)
    list(APPEND labels asan)
    add_dependencies(forebay_asan_tests ${name})
  endif()
  if(ARG_THREADS)
    list(APPEND labels tsan)
    add_dependencies(forebay_tsan_tests ${name})
  endif()
  set(environment
    ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
    UBSAN_OPTIONS=print_stacktrace=1
    TSAN_OPTIONS=halt_on_error=1:suppressions=${CMAKE_SOURCE_DIR}/tools/tsan.supp
    "FOREBAY_FAULTS=$<$<TARGET_EXISTS:forebay_faults>:$<TARGET_FILE:forebay_faults>>")
  if(FOREBAY_MINISTACK)
    list(APPEND environment FOREBAY_MINISTACK=${FOREBAY_MINISTACK})
  endif()
  if(FOREBAY_WEED)
    list(APPEND environment FOREBAY_WEED=${FOREBAY_WEED})
  elseif(ARG_NEEDS_WEED)
    message(WARNING "${name} needs the S3 server: run tools/setup.sh test, then configure again")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${labels}"
    ENVIRONMENT "${environment}")
endfunction()

if(FOREBAY_TESTS)
  find_package(GTest REQUIRED)
  add_library(forebay_gtest INTERFACE)
  target_link_libraries(forebay_gtest INTERFACE GTest::gmock GTest::gtest GTest::gtest_main)
  target_include_directories(forebay_gtest INTERFACE ${CMAKE_SOURCE_DIR})  # "testing/..."
endif()
