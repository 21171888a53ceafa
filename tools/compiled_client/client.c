/* Asks a node for std_srvs/Trigger and MoveIt's compute_ik in turn, as compiled clients do; see __main__.py.

   Usage: client REQUESTS TRIGGER COMPUTE_IK, two names of services and a file of
     number of requests and of joints,
     names of the group, the tip and the base link, and of the joints,
     per request a pose (x y z, quaternion x y z w) and the values of all joints.
   Prints per request both times, s, and the error code. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <moveit_msgs/srv/get_position_ik.h>
#include <rcl/error_handling.h>
#include <rcl/graph.h>
#include <rcl/rcl.h>
#include <rosidl_runtime_c/primitives_sequence_functions.h>
#include <rosidl_runtime_c/string_functions.h>
#include <std_srvs/srv/trigger.h>

enum { NAME = 256, WARM_UP = 100, PATIENCE_S = 10 };

static void must(bool done, const char *what) {
  if (!done) {
    fprintf(stderr, "error: %s: %s\n", what, rcl_error_is_set() ? rcl_get_error_string().str : "not possible");
    exit(EXIT_FAILURE);
  }
}

static void done(rcl_ret_t code, const char *what) { must(code == RCL_RET_OK, what); }

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static rcl_client_t client_of(rcl_node_t *node, const rosidl_service_type_support_t *type, const char *name) {
  rcl_client_t client = rcl_get_zero_initialized_client();
  rcl_client_options_t options = rcl_client_get_default_options();
  done(rcl_client_init(&client, node, type, name, &options), name);
  bool there = false;
  for (double end = seconds() + PATIENCE_S; !there && seconds() < end;)
    done(rcl_service_server_is_available(node, &client, &there), name);
  must(there, name);
  return client;
}

/* Sends a request and waits for its response; returns how long that takes, s. */
static double asked(rcl_client_t *client, rcl_wait_set_t *set, const void *request, void *response) {
  double start = seconds();
  int64_t number;
  done(rcl_send_request(client, request, &number), "sending a request");
  for (;;) {
    done(rcl_wait_set_clear(set), "waiting");
    done(rcl_wait_set_add_client(set, client, NULL), "waiting");
    done(rcl_wait(set, RCL_S_TO_NS(PATIENCE_S)), "waiting for a response");
    rmw_request_id_t answered;
    rcl_ret_t taken = rcl_take_response(client, &answered, response);
    if (taken == RCL_RET_CLIENT_TAKE_FAILED) continue; /* it was another client's */
    done(taken, "taking a response");
    if (answered.sequence_number == number) return seconds() - start;
  }
}

static void read_name(FILE *file, rosidl_runtime_c__String *name) {
  char text[NAME];
  must(fscanf(file, "%255s", text) == 1 && rosidl_runtime_c__String__assign(name, text), "reading a name");
}

static double read_number(FILE *file) {
  double number;
  must(fscanf(file, "%lf", &number) == 1, "reading a number");
  return number;
}

int main(int count, char **arguments) {
  must(count == 4, "three arguments are needed: REQUESTS TRIGGER COMPUTE_IK");
  FILE *file = fopen(arguments[1], "r");
  must(file != NULL, arguments[1]);
  int requests, joints;
  must(fscanf(file, "%d %d", &requests, &joints) == 2 && requests > 0 && joints > 0, arguments[1]);

  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  rcl_context_t context = rcl_get_zero_initialized_context();
  rcl_node_t node = rcl_get_zero_initialized_node();
  rcl_node_options_t node_options = rcl_node_get_default_options();
  rcl_wait_set_t set = rcl_get_zero_initialized_wait_set();
  done(rcl_init_options_init(&options, rcl_get_default_allocator()), "options");
  done(rcl_init(0, NULL, &options, &context), "ROS");
  done(rcl_node_init(&node, "kinopt_compiled_client", "", &context, &node_options), "node");
  done(rcl_wait_set_init(&set, 0, 0, 0, 1, 0, 0, &context, rcl_get_default_allocator()), "wait set");
  rcl_client_t trigger = client_of(&node, ROSIDL_GET_SRV_TYPE_SUPPORT(std_srvs, srv, Trigger), arguments[2]);
  rcl_client_t compute_ik =
      client_of(&node, ROSIDL_GET_SRV_TYPE_SUPPORT(moveit_msgs, srv, GetPositionIK), arguments[3]);

  // The functions __init leave numbers as they are: timeout and stamps would be whatever lay on the stack.
  std_srvs__srv__Trigger_Request nothing = {0};
  std_srvs__srv__Trigger_Response said = {0};
  moveit_msgs__srv__GetPositionIK_Request request = {0};
  moveit_msgs__srv__GetPositionIK_Response response = {0};
  must(std_srvs__srv__Trigger_Request__init(&nothing) && std_srvs__srv__Trigger_Response__init(&said) &&
           moveit_msgs__srv__GetPositionIK_Request__init(&request) &&
           moveit_msgs__srv__GetPositionIK_Response__init(&response),
       "messages");
  moveit_msgs__msg__PositionIKRequest *ik = &request.ik_request;
  geometry_msgs__msg__Pose *pose = &ik->pose_stamped.pose;
  sensor_msgs__msg__JointState *state = &ik->robot_state.joint_state;
  must(rosidl_runtime_c__String__Sequence__init(&state->name, (size_t)joints) &&
           rosidl_runtime_c__double__Sequence__init(&state->position, (size_t)joints),
       "messages");
  read_name(file, &ik->group_name);
  read_name(file, &ik->ik_link_name);
  read_name(file, &ik->pose_stamped.header.frame_id);
  for (int joint = 0; joint < joints; joint++) read_name(file, &state->name.data[joint]);

  double *numbers[] = {&pose->position.x,    &pose->position.y,    &pose->position.z,   &pose->orientation.x,
                       &pose->orientation.y, &pose->orientation.z, &pose->orientation.w};
  for (int i = 0; i < requests; i++) {
    for (int k = 0; k < 7; k++) *numbers[k] = read_number(file);
    for (int joint = 0; joint < joints; joint++) state->position.data[joint] = read_number(file);
    for (int again = i == 0 ? WARM_UP : 0; again > 0; again--) {
      asked(&trigger, &set, &nothing, &said);
      asked(&compute_ik, &set, &request, &response);
    }
    double of_trigger = asked(&trigger, &set, &nothing, &said);
    double of_ik = asked(&compute_ik, &set, &request, &response);
    printf("%.9f %.9f %d\n", of_trigger, of_ik, response.error_code.val);
  }
  return EXIT_SUCCESS; /* the system takes back what is open */
}
