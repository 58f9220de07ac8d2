# One CMake target per folder. `troupe_library(name SOURCES ... USES ...)` makes the static library
# troupe_<name>, linked privately to what it uses, so that the build files are the dependency diagram.
#
# Flags that bits depend on stand here and nowhere else: the compiler must neither contract a multiply
# and an add into one rounding, nor reorder sums, and every target sees the same instruction set.

add_library(troupe_flags INTERFACE)
target_compile_options(troupe_flags INTERFACE
  -march=x86-64-v3 -ffp-contract=off -fno-fast-math -Wall -Wextra -Wpedantic -Wshadow -Werror
  -Wno-restrict)  # g++ 12 reports it falsely for "literal" + std::string (GCC bug 105651)
# Highway takes a processor to have AVX2 only if it has the AES instructions too, which x86-64-v3 does not
# name; without this it would silently choose 4 lanes.
target_compile_definitions(troupe_flags INTERFACE HWY_DISABLE_PCLMUL_AES)
target_include_directories(troupe_flags INTERFACE ${CMAKE_SOURCE_DIR})

set(TROUPE_SANITIZE "" CACHE STRING "Sanitizers to build with, for example address,undefined")
if(TROUPE_SANITIZE)
  target_compile_options(troupe_flags INTERFACE
    -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
endif()

function(troupe_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;USES")
  add_library(troupe_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(troupe_${name} PRIVATE troupe_flags ${ARG_USES})
endfunction()

# `troupe_test(path/of_test.cpp USES ...)`: one GoogleTest program per test file, registered with ctest
# under the file's path. A test file that no list names fails tests/tidy.
function(troupe_test source)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TIMEOUT" "USES;LABELS")
  string(REPLACE "/" "." name ${source})
  string(REGEX REPLACE "\\.cpp$" "" name ${name})
  add_executable(${name} ${CMAKE_SOURCE_DIR}/tests/${source})
  target_link_libraries(${name} PRIVATE troupe_flags ${ARG_USES} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()
