# Included by project() when this package is built on the ROS 2 wheels, by pip or by colcon
# (-DCMAKE_PROJECT_INCLUDE=<this file>). A ROS installation does not need it.

find_package(Python3 REQUIRED COMPONENTS Interpreter Development.Module NumPy)

# The wheels form a ROS prefix: <prefix>/lib/pythonX.Y/site-packages/ament_package/__init__.py
execute_process(
  COMMAND "${Python3_EXECUTABLE}" -c
    "import ament_package, pathlib; print(pathlib.Path(ament_package.__file__).parents[4])"
  OUTPUT_VARIABLE kinopt_ros_prefix
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE kinopt_result)
if(NOT kinopt_result EQUAL 0)
  message(FATAL_ERROR "No ament_package for ${Python3_EXECUTABLE}: install ros-ament-package there")
endif()
list(PREPEND CMAKE_PREFIX_PATH "${kinopt_ros_prefix}")
if(DEFINED ENV{AMENT_PREFIX_PATH})
  set(ENV{AMENT_PREFIX_PATH} "$ENV{AMENT_PREFIX_PATH}:${kinopt_ros_prefix}")
else()
  set(ENV{AMENT_PREFIX_PATH} "${kinopt_ros_prefix}")
endif()

# The wheels' CMake files carry the Python include folders of the machine that built them, which
# CMake refuses because they do not exist here. Drop them once everything is defined.
function(kinopt_drop_foreign_include_directories)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(folders)
      list(FILTER folders EXCLUDE REGEX "^/opt/python/")
      set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${folders}")
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL kinopt_drop_foreign_include_directories)
