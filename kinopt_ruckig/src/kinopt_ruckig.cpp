// What kinopt_ros uses of ruckig's Python module, by the same names, on the C++ library that ROS distributions have.
// Tried with ruckig 0.9.2 (Jazzy, Kilted) and 0.19.4.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <ruckig/ruckig.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace py = pybind11;

using Brake = ruckig::BrakeProfile;
using Input = ruckig::InputParameter<ruckig::DynamicDOFs>;
using Planner = ruckig::Ruckig<ruckig::DynamicDOFs>;
using Profile = ruckig::Profile;
using Trajectory = ruckig::Trajectory<ruckig::DynamicDOFs>;

struct RuckigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The library takes lengths as given: others would be read and written beyond their ends.
void check_lengths(const Planner& planner, const Input& input, const Trajectory& trajectory) {
  const std::size_t wanted = planner.degrees_of_freedom;
  const auto check = [wanted](const char* name, std::size_t given) {
    if (given != wanted) {
      throw RuckigError(std::string(name) + " has " + std::to_string(given) + " coordinates, not " + std::to_string(wanted));
    }
  };
  check("the InputParameter", input.degrees_of_freedom);
  check("the Trajectory", trajectory.degrees_of_freedom);
  check("current_position", input.current_position.size());
  check("current_velocity", input.current_velocity.size());
  check("target_position", input.target_position.size());
  check("max_velocity", input.max_velocity.size());
  check("max_acceleration", input.max_acceleration.size());
  check("max_jerk", input.max_jerk.size());
}

PYBIND11_MODULE(kinopt_ruckig, m) {
  m.doc() = "What kinopt_ros uses of ruckig's Python module, on the C++ library.";
  py::register_exception<RuckigError>(m, "RuckigError", PyExc_RuntimeError);

  // A result without a name here is a failure.
  py::enum_<ruckig::Result>(m, "Result")
      .value("Working", ruckig::Result::Working)
      .value("Finished", ruckig::Result::Finished);

  py::class_<Input>(m, "InputParameter")
      .def(py::init<std::size_t>(), py::arg("dofs"))
      .def_readwrite("current_position", &Input::current_position)
      .def_readwrite("current_velocity", &Input::current_velocity)
      .def_readwrite("target_position", &Input::target_position)
      .def_readwrite("max_velocity", &Input::max_velocity)
      .def_readwrite("max_acceleration", &Input::max_acceleration)
      .def_readwrite("max_jerk", &Input::max_jerk)
      .def_readwrite("minimum_duration", &Input::minimum_duration);

  py::class_<Brake>(m, "BrakeProfile").def_readonly("t", &Brake::t).def_readonly("a", &Brake::a);
  py::class_<Profile>(m, "Profile")
      .def_readonly("brake", &Profile::brake)
      .def_readonly("t", &Profile::t)
      .def_readonly("a", &Profile::a);
  py::class_<Trajectory>(m, "Trajectory")
      .def(py::init<std::size_t>(), py::arg("dofs"))
      .def_property_readonly("duration", &Trajectory::get_duration)
      .def_property_readonly("profiles", &Trajectory::get_profiles);

  py::class_<Planner>(m, "Ruckig")
      .def(py::init<std::size_t>(), py::arg("dofs"))
      .def(
          "calculate",
          [](Planner& planner, const Input& input, Trajectory& trajectory) {
            check_lengths(planner, input, trajectory);
            return planner.calculate(input, trajectory);
          },
          py::arg("input"), py::arg("trajectory"), py::call_guard<py::gil_scoped_release>());
}
