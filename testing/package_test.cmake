# Installs the library into a fresh prefix, builds testing/package against it as a user would, and
# runs it: cmake -DBUILD= -DSOURCE= -DWORK= -DCOMPILER= -DLAUNCHER= -DVIDEO= -P package_test.cmake
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK}/data)

function(run name)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE out ERROR_VARIABLE out RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${name} failed:\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

run("installing" ${CMAKE_COMMAND} --install ${BUILD} --component cpp --prefix ${WORK}/prefix)
run("configuring" ${CMAKE_COMMAND} -S ${SOURCE}/testing/package -B ${WORK}/build -G Ninja
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run("building" ${CMAKE_COMMAND} --build ${WORK}/build)
run("running" ${WORK}/build/user ${WORK}/data ${VIDEO})
if(NOT output STREQUAL "hello, 6 frames\n")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()
file(REMOVE_RECURSE ${WORK})
