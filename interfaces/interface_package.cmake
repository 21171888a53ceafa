# What the CMakeLists.txt of every package here does: generate what rclpy needs, and nothing else.

find_package(ament_cmake REQUIRED)
find_package(rosidl_cmake REQUIRED)
find_package(rosidl_generator_c REQUIRED)
find_package(rosidl_typesupport_c REQUIRED)
find_package(rosidl_typesupport_fastrtps_c REQUIRED)
find_package(rosidl_typesupport_introspection_c REQUIRED)
find_package(rosidl_generator_py REQUIRED)

ament_package_xml()
set(needed ${${PROJECT_NAME}_BUILD_DEPENDS})
foreach(package IN LISTS needed)
  find_package(${package} REQUIRED)
endforeach()

# Nobody here needs C++. Without introspection the middleware prints pages of errors about each type, and goes on.
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "_cpp:|generator_rs")
macro(rosidl_generator_py_get_typesupports implementations)
  set(${implementations} rosidl_typesupport_c)
endmacro()

file(GLOB interface_files RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "msg/*.msg" "srv/*.srv" "action/*.action")
list(SORT interface_files)
rosidl_generate_interfaces(${PROJECT_NAME} ${interface_files} DEPENDENCIES ${needed})
# Its files define the same static names.
set_target_properties(${PROJECT_NAME}__rosidl_generator_c PROPERTIES UNITY_BUILD OFF)
ament_package()
