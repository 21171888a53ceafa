# Everything runs in .venv (and .venv-colcon), which the targets make by themselves.
# Options go through ARGS, for example: make demo ARGS=--once, make test ARGS="-k limits -x".

ARGS   ?=
PYTHON ?=

VENV   := .venv
COLCON := .venv-colcon
MATRIX := .venv-matrix
# PyRoki wants another JAX and has many dependencies: an environment of its own.
PYROKI := .venv-pyroki

# The wheels of ROS 2 Kilted, or of another distribution: DISTRO=jazzy, as `make test-matrix` calls.
DISTRO := kilted
ifeq ($(DISTRO),kilted)
ros         := ros
constraints := constraints.txt
else
ros         := ros-$(DISTRO)
build_group := build-$(DISTRO)
constraints := $(VENV)/constraints.txt
endif

# A ROS installation or another environment in the calling shell must not leak in.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV _ROS_WHEELS_BOOTSTRAP_COMPLETE
unexport AMENT_PREFIX_PATH COLCON_PREFIX_PATH CMAKE_PREFIX_PATH ROS_DISTRO
# Tests start a hundred nodes, each of which would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE
# Nothing started from here looks for other machines; that none reaches it is up to kinopt_ros/ros/client/isolation.py.
export ROS_AUTOMATIC_DISCOVERY_RANGE := LOCALHOST

interfaces := $(wildcard kinopt_msgs/msg kinopt_msgs/srv kinopt_msgs/action \
                kinopt_msgs/msg/*.msg kinopt_msgs/srv/*.srv kinopt_msgs/action/*.action)
msgs_build := kinopt_msgs/CMakeLists.txt kinopt_msgs/package.xml kinopt_msgs/pyproject.toml \
              kinopt_msgs/cmake/pip_build.cmake

# $(call pip,environment) - installs the versions of the constraints and no others
pip = PYTHONWARNINGS="ignore:Editable installation" \
      $(1)/bin/python -m pip --disable-pip-version-check install --quiet --constraint $(constraints)
# The environment that pip makes to build a package in is held to them, too.
pinned_build := --build-constraint $(constraints)

# ROS's command line is on no package index.
FORGE    := https://github.com
ros2_packages := ros2action ros2cli ros2interface ros2lifecycle ros2node ros2param ros2service ros2topic

.PHONY: help demo view pictures ros2 interfaces test test-matrix fuzz stops layers unit bench bench-beam bench-client bench-gpu lint docs release colcon colcon-ros env clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | \
	  while IFS='|' read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done
	@echo 'Options: ARGS="..." for the command behind a target, PYTHON=... for the environment.'

demo: $(VENV)/.run ## start the node, ask it for a motion, print the verified answer (ARGS=--once)
	@$(VENV)/bin/kinopt demo $(ARGS)

view: $(VENV)/.run $(VENV)/.view ## node, simulated robot, and a page in the browser to drag it (ARGS="--port 8081", ARGS="ur5")
	@$(VENV)/bin/kinopt view --simulate $(ARGS)

# Chromium is a package of the system: apt-get install chromium.
pictures: $(VENV)/.run $(VENV)/.test $(VENV)/.view $(VENV)/.pictures ## the pictures of the book; those of docs/viewer.md by a browser without a screen
	@PYTHONPATH=test:tools $(VENV)/bin/python tools/book_pictures.py $(ARGS)
	@PYTHONPATH=test:tools $(VENV)/bin/python tools/viewer_pictures.py $(ARGS)

ros2: $(VENV)/.run ## the command ros2 beside ROS's wheels, from its sources (FORGE=... where they are)
	@$(call pip,$(VENV)) argcomplete packaging psutil
	@$(call pip,$(VENV)) --no-deps "git+$(FORGE)/ros2/rosidl_runtime_py@$(DISTRO)" \
	  $(foreach name,$(ros2_packages),"$(name) @ git+$(FORGE)/ros2/ros2cli@$(DISTRO)#subdirectory=$(name)")

interfaces: $(VENV)/.run ## build MoveIt's and the controllers' interfaces where they are missing, and say what to source
	@$(VENV)/bin/python tools/interface_packages.py

# Files of tests go to three processes, in the order of test/conftest.py: what takes long first. Of three, two find work for
# two cores while one waits for nodes to start or to end.
test: $(VENV)/.run $(VENV)/.test interfaces ## all tests
	@$(VENV)/bin/python -m pytest test --numprocesses 3 --dist loadfile --no-loadscope-reorder $(ARGS)

test-matrix: ## all tests with Kilted on Python 3.11 and 3.13, Jazzy on 3.12 (PYTHON312=... names one)
	@MAKE="$(MAKE)" MATRIX=$(MATRIX) sh tools/test_matrix.sh $(ARGS)

fuzz: $(VENV)/.run $(VENV)/.test ## hostile inputs of every kind (ARGS="--inputs 100000 --seed 1")
	@PYTHONPATH=test:tools $(VENV)/bin/python -m fuzz $(ARGS)

stops: $(VENV)/.run $(VENV)/.test ## stops of robots with faults, judged each ms (ARGS="--trials 100 --plant lag_30 --seed 2")
	@PYTHONPATH=test:tools $(VENV)/bin/python -m stops $(ARGS)

layers: $(VENV)/.test ## the picture of ARCHITECTURE.md
	@PYTHONPATH=test $(VENV)/bin/python -m support.layers_picture docs/layers.svg

unit: $(VENV)/.run $(VENV)/.test ## fast tests only
	@$(VENV)/bin/python -m pytest test/unit -m "not slow and not ros" $(ARGS)

bench: $(VENV)/.run $(VENV)/.bench ## compare with other solvers (ARGS="ik --robot panda --json")
	@$(VENV)/bin/kinopt bench $(ARGS)

bench-beam: $(VENV)/.run $(VENV)/.bench $(PYROKI)/.pyroki ## batches of targets beside PyRoki (ARGS="--sizes 1,100 --json")
	@$(VENV)/bin/kinopt bench beam --pyroki-python $(PYROKI)/bin/python $(ARGS)

bench-client: $(VENV)/.run ## MoveIt's compute_ik beside std_srvs/Trigger, asked by a compiled client (ARGS="--calls 5000 --json")
	@PYTHONPATH=tools $(VENV)/bin/python -m compiled_client $(ARGS)

# Before the gigabytes of CUDA libraries: is there a device at all?
bench-gpu: ## the same on an NVIDIA graphics card, JAX for CUDA 12 included
	@nvidia-smi --list-gpus 2>/dev/null | grep -q . || \
	  { echo "error: there is no NVIDIA graphics card here (nvidia-smi lists none): figures of GPUs stay unmeasured." >&2; exit 1; }
	@$(MAKE) --no-print-directory $(VENV)/.run $(VENV)/.bench $(VENV)/.cuda $(PYROKI)/.cuda
	@$(VENV)/bin/kinopt bench beam --device cuda --solver hjcd,jax_lm,pyroki,cpu --sizes 1,10,100,1000,10000 \
	  --pyroki-python $(PYROKI)/bin/python $(ARGS)
	@$(VENV)/bin/kinopt bench hjcd --device cuda --per-call 1,100 --algorithms screened_lm,screened_lm_graphs,hjcd_ik,hjcd_ik_graphs,ik_beam
	@$(VENV)/bin/kinopt bench objective --device cuda --solvers jax_lm --sizes 1,100,1000 --targets 1000 \
	  --pyroki-python $(PYROKI)/bin/python

lint: $(VENV)/.run $(VENV)/.test ## ruff and mypy
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --config-file test/mypy.ini test

docs: $(VENV)/.run $(VENV)/.docs ## the book, into build/docs (warnings are errors)
	@rm -rf build/docs build/docs.doctrees
	@$(VENV)/bin/python -m sphinx --builder html --fail-on-warning --keep-going --quiet --fresh-env \
	  -d build/docs.doctrees docs build/docs $(ARGS)
	@echo "The book: build/docs/index.html"

release: $(VENV)/.run $(VENV)/.release ## sdists and wheels in build/release, tried elsewhere (ARGS="python3.12 python3.13": there, too)
	@tools/release.sh $(VENV) build/release $(ARGS)

colcon: $(COLCON)/.tools $(COLCON)/.ruckig ## build and test as a ROS workspace does, on the ROS wheels
	@tools/colcon.sh $(COLCON) $(ARGS)

# For machines with a ROS installation, as the containers of its distributions; WORKSPACE has the clone in src/.
colcon-ros: ## build and test with an installed ROS (WORKSPACE=...)
	@tools/colcon_ros.sh "$(WORKSPACE)"

env: $(VENV)/.run $(VENV)/.test ## only make .venv, with everything the tests need

clean: ## remove the environments and everything built
	rm -rf $(VENV) $(COLCON) $(MATRIX) $(PYROKI) build install log kinopt_ros.egg-info \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find kinopt_ros test benchmarks examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The environments. Each stamp file says what was installed, and is older than what it depends on
# as soon as that must be installed again.

$(VENV)/.base $(COLCON)/.base $(PYROKI)/.base:
	@python=$$(sh tools/find_python.sh $(PYTHON)) && \
	  echo "Making $(@D) with $$python" && \
	  "$$python" -m venv --clear $(@D) && \
	  touch $(@D)/COLCON_IGNORE && \
	  $(@D)/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt pip
	@touch $@

# Another distribution's versions in place of Kilted's, all else as it is.
$(VENV)/constraints.txt: $(VENV)/.base constraints.txt constraints-$(DISTRO).txt
	@{ grep -v '^ros-' constraints.txt; cat constraints-$(DISTRO).txt; } > $@

# With what kinopt_msgs needs for its build, so that a changed .msg or .srv costs the compilation alone.
$(VENV)/.python: $(VENV)/.base Makefile $(constraints) setup.py pyproject.toml kinopt_msgs/pyproject.toml
	@echo "Installing kinopt_ros (editable), ROS 2 wheels and libraries"
	@$(VENV)/bin/python tools/build_requires.py kinopt_msgs/pyproject.toml $(build_group) > $(VENV)/requirements.txt
	@$(call pip,$(VENV)) $(pinned_build) --editable '.[$(ros),collision]' --requirement $(VENV)/requirements.txt
	@touch $@

$(VENV)/.run: $(VENV)/.python $(interfaces) $(msgs_build)
	@echo "Building kinopt_msgs"
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" && export PATH && \
	  $(call pip,$(VENV)) --no-build-isolation --no-deps --force-reinstall ./kinopt_msgs
	@touch $@

$(VENV)/.test: $(VENV)/.python
	@echo "Installing what the tests need"
	@$(call pip,$(VENV)) $(pinned_build) --editable '.[$(ros),test,lint]'
	@touch $@

$(VENV)/.view: $(VENV)/.python
	@echo "Installing the viewer"
	@$(call pip,$(VENV)) $(pinned_build) --editable '.[$(ros),view]'
	@touch $@

$(VENV)/.pictures: $(VENV)/.view
	@echo "Installing what drives a browser"
	@$(call pip,$(VENV)) $(pinned_build) --editable '.[$(ros),view,browser]'
	@touch $@

$(VENV)/.docs: $(VENV)/.python
	@echo "Installing what the book is built with"
	@$(call pip,$(VENV)) $(pinned_build) --editable '.[$(ros),docs,jax]'
	@touch $@

$(VENV)/.release: $(VENV)/.python
	@echo "Installing what releases are made with"
	@$(call pip,$(VENV)) $(pinned_build) --editable '.[$(ros),release]'
	@touch $@

$(VENV)/.bench: $(VENV)/.python
	@echo "Installing the solvers to compare with"
	@$(call pip,$(VENV)) $(pinned_build) --editable '.[$(ros),bench]'
	@touch $@

# Kept out of all other targets; without it, `kinopt bench beam` says what is missing.
$(PYROKI)/.pyroki: $(PYROKI)/.base constraints-pyroki.txt
	@echo "Installing PyRoki"
	@$(PYROKI)/bin/python -m pip --disable-pip-version-check install --quiet \
	  --constraint constraints-pyroki.txt almond-pyroki almond-jaxls
	@touch $@

# JAX's own packages are held to the version of JAX, whose extra names those of NVIDIA that go with it.
$(VENV)/.cuda: $(VENV)/.bench
	@echo "Installing JAX for CUDA 12 beside kinopt_ros"
	@$(call pip,$(VENV)) 'jax[cuda12]'
	@touch $@

$(PYROKI)/.cuda: $(PYROKI)/.pyroki
	@echo "Installing JAX for CUDA 12 beside PyRoki"
	@$(PYROKI)/bin/python -m pip --disable-pip-version-check install --quiet \
	  --constraint constraints-pyroki.txt 'jax[cuda12]'
	@touch $@

# colcon builds the packages itself: nothing of ours is installed in its environment.
$(COLCON)/.tools: $(COLCON)/.base Makefile constraints.txt setup.py kinopt_msgs/pyproject.toml
	@echo "Installing colcon, ROS 2 wheels and libraries"
	@$(call pip,$(COLCON)) $(pinned_build) --editable '.[ros,test]'
	@$(COLCON)/bin/python -m pip uninstall --quiet --yes kinopt_ros
	@$(COLCON)/bin/python tools/build_requires.py kinopt_msgs/pyproject.toml > $(COLCON)/requirements.txt
	@$(call pip,$(COLCON)) --requirement $(COLCON)/requirements.txt colcon-common-extensions pybind11 setuptools
	@touch $@

# The C++ library as ROS distributions have it, where CMake does not look by itself. That of pip's wheel asks for a newer
# libstdc++ than Debian 12 has.
ruckig := ruckig-0.9.2
$(COLCON)/.ruckig: $(COLCON)/.tools
	@echo "Building $(ruckig)"
	@rm -rf $(COLCON)/ruckig
	@$(COLCON)/bin/python -m pip --disable-pip-version-check download --quiet --no-deps --no-binary ruckig --no-build-isolation \
	  --dest $(COLCON)/ruckig $(subst -,==,$(ruckig))
	@tar --extract --gzip --file $(COLCON)/ruckig/$(ruckig).tar.gz --directory $(COLCON)/ruckig
	@touch $(COLCON)/ruckig/$(ruckig)/package.xml  # is installed, and missing in the sdist
	@PATH="$(CURDIR)/$(COLCON)/bin:$$PATH" && export PATH && \
	  cmake -G Ninja -S $(COLCON)/ruckig/$(ruckig) -B $(COLCON)/ruckig/build --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
	  -DBUILD_EXAMPLES=OFF -DBUILD_TESTS=OFF -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
	  -DCMAKE_INSTALL_PREFIX=$(COLCON)/ruckig/install -DCMAKE_INSTALL_LIBDIR=lib && \
	  { cmake --build $(COLCON)/ruckig/build --target install >$(COLCON)/ruckig/build.log || \
	    { tail -n 40 $(COLCON)/ruckig/build.log >&2; exit 1; }; }
	@touch $@
