//===- Module.cpp - The C interface as a Python module -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "python/module/Caller.h"
#include "python/module/Interrupt.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

using namespace tegula::python;

void tegula::python::raise(tegula_status status, const Message &message) {
  nb::object error = nb::module_::import_("tegula._errors")
                         .attr("error_of")(int(status), message.json(), message.text());
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

void tegula::python::raiseWrongCall(const std::string &words) {
  nb::object error = nb::module_::import_("tegula._errors").attr("wrong_call")(words);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

static Context makeContext(int device) {
  tegula_context_options options = {};
  options.struct_bytes = sizeof(options);
  options.device = device < 0 ? 0 : device;
  Context context;
  tegula_context *handle = nullptr;
  Message message;
  must(tegula_context_create(&options, &handle, message), message);
  context.handle.reset(handle);
  return context;
}

static Program parse(const std::string &text, const std::string &fileName) {
  Program program;
  tegula_program *handle = nullptr;
  Message message;
  must(tegula_parse(text.data(), text.size(), fileName.c_str(), &handle, message), message);
  program.handle.reset(handle);
  return program;
}

/// The warnings of a check as (json, text); errors are raised.
static std::pair<std::string, std::string> check(const Program &program,
                                                 const std::string &kernel) {
  Message message;
  tegula_status status;
  {
    Interruptible interruptible;
    nb::gil_scoped_release released;
    status = tegula_check(program.handle.get(), kernel.c_str(), message);
  }
  must(status, message);
  return {message.json(), message.text()};
}

static nb::list kernelsOf(const Program &program) {
  nb::list names;
  for (size_t kernel = 0; kernel < tegula_num_kernels(program.handle.get()); ++kernel)
    names.append(tegula_kernel_name(program.handle.get(), kernel));
  return names;
}

/// Tuples (name, role, type, dims, default).
static nb::list parametersOf(const Program &program, size_t kernel) {
  static const char *roles[] = {"in", "inout", "out", "scalar", "constant"};
  const tegula_program *handle = program.handle.get();
  nb::list result;
  for (size_t index = 0; index < tegula_num_parameters(handle, kernel); ++index) {
    tegula_parameter_info info = tegula_parameter(handle, kernel, index);
    nb::list dims;
    for (size_t dim = 0; dim < info.rank; ++dim)
      dims.append(tegula_parameter_dim(handle, kernel, index, dim));
    nb::object byDefault =
        info.default_value ? nb::object(nb::str(info.default_value)) : nb::none();
    result.append(
        nb::make_tuple(info.name, roles[info.role], info.type, nb::tuple(dims), byDefault));
  }
  return result;
}

/// (the kernel, json, text): what the compiler had to say beside errors, which are raised.
static nb::tuple compile(const Context &context, const Program &program, const std::string &kernel,
                         const std::string &target,
                         const std::vector<std::pair<std::string, std::string>> &settings,
                         unsigned ellipsisRank, const std::vector<std::string> &optionals,
                         bool checked, const std::vector<std::string> &stages, bool tuned,
                         const std::optional<std::string> &precision, unsigned observe) {
  std::vector<tegula_setting> settingTexts;
  for (const auto &[name, value] : settings)
    settingTexts.push_back({name.c_str(), value.c_str()});
  std::vector<const char *> optionalTexts, stageTexts;
  for (const std::string &name : optionals)
    optionalTexts.push_back(name.c_str());
  for (const std::string &name : stages)
    stageTexts.push_back(name.c_str());
  tegula_compile_options options = {};
  options.struct_bytes = sizeof(options);
  options.kernel = kernel.c_str();
  options.target = target.c_str();
  options.settings = settingTexts.data();
  options.num_settings = settingTexts.size();
  options.ellipsis_rank = ellipsisRank;
  options.optionals = optionalTexts.data();
  options.num_optionals = optionalTexts.size();
  options.checked = checked;
  options.stages = stageTexts.data();
  options.num_stages = stageTexts.size();
  options.tuned = tuned;
  options.precision = precision ? precision->c_str() : nullptr;
  options.observe = static_cast<tegula_observe>(observe);
  Message message;
  tegula_kernel *handle = nullptr;
  tegula_status status;
  {
    Interruptible interruptible;
    nb::gil_scoped_release released;
    status = tegula_compile(context.handle.get(), program.handle.get(), &options, &handle, message);
  }
  must(status, message);
  Compiled compiled;
  compiled.handle.reset(handle);
  return nb::make_tuple(nb::cast(std::move(compiled)), message.json(), message.text());
}

/// The program of a kernel's gradients. `ellipsisRank`: none where `...` may stand for any.
static Program gradient(const Program &program, const std::string &kernel,
                        const std::vector<std::string> &wrt,
                        const std::vector<std::pair<std::string, std::string>> &settings,
                        const std::vector<std::string> &leftOut,
                        const std::optional<unsigned> &ellipsisRank,
                        const std::optional<bool> &save) {
  std::vector<tegula_setting> settingTexts;
  for (const auto &[name, value] : settings)
    settingTexts.push_back({name.c_str(), value.c_str()});
  std::vector<const char *> wrtTexts, leftOutTexts;
  for (const std::string &name : wrt)
    wrtTexts.push_back(name.c_str());
  for (const std::string &name : leftOut)
    leftOutTexts.push_back(name.c_str());
  tegula_gradient_options options = {};
  options.struct_bytes = sizeof(options);
  options.kernel = kernel.c_str();
  options.wrt = wrtTexts.data();
  options.num_wrt = wrtTexts.size();
  options.settings = settingTexts.data();
  options.num_settings = settingTexts.size();
  options.left_out = leftOutTexts.data();
  options.num_left_out = leftOutTexts.size();
  options.has_ellipsis_rank = ellipsisRank.has_value();
  options.ellipsis_rank = ellipsisRank.value_or(0);
  options.saved = !save ? TEGULA_SAVED_BY_COST : *save ? TEGULA_SAVED_ALL : TEGULA_SAVED_NONE;
  Message message;
  tegula_program *handle = nullptr;
  tegula_status status;
  {
    Interruptible interruptible;
    nb::gil_scoped_release released;
    status = tegula_gradient(program.handle.get(), &options, &handle, message);
  }
  must(status, message);
  Program result;
  result.handle.reset(handle);
  return result;
}

static nb::object stageOf(const Compiled &compiled, const std::string &stage) {
  const char *text = tegula_stage(compiled.handle.get(), stage.c_str());
  return text ? nb::object(nb::str(text)) : nb::none();
}

/// Waits for a stream, null being the one that torch queues on now.
static void synchronize(const Compiled &compiled, int device) {
  void *stream = device < 0 ? nullptr : currentStream(device);
  Message message;
  tegula_status status;
  {
    nb::gil_scoped_release released;
    status = tegula_synchronize(compiled.handle.get(), stream, message);
  }
  must(status, message);
}

static int traverseCaller(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Caller>(self)->traverse(visit, arg) : 0;
}
static int clearCaller(PyObject *self) {
  nb::inst_ptr<Caller>(self)->clear();
  return 0;
}
static PyType_Slot callerSlots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverseCaller)},
                                    {Py_tp_clear, reinterpret_cast<void *>(clearCaller)},
                                    {0, nullptr}};

NB_MODULE(_tegula, module) {
  module.def("version", [] { return tegula_version(); });
  module.def("llvm_version", [] { return tegula_llvm_version(); });
  nb::class_<Context>(module, "Context");
  nb::class_<Program>(module, "Program");
  nb::class_<Compiled>(module, "Compiled")
      .def("describe",
           [](const Compiled &compiled) { return tegula_describe(compiled.handle.get()); })
      .def("stage", stageOf)
      .def("synchronize", synchronize);
  nb::class_<Caller>(module, "Caller", nb::type_slots(callerSlots))
      .def(nb::init<const Program &, size_t, nb::callable>())
      .def("settle", &Caller::settle)
      .def("observe", &Caller::observe)
      .def("__call__", &Caller::call);
  module.def("make_context", makeContext);
  module.def("parse", parse);
  module.def("check", check);
  module.def("kernels_of", kernelsOf);
  module.def("parameters_of", parametersOf);
  module.def("text_of",
             [](const Program &program) { return tegula_program_text(program.handle.get()); });
  module.def("gradient", gradient, nb::arg("program"), nb::arg("kernel"), nb::arg("wrt"),
             nb::arg("settings"), nb::arg("left_out"), nb::arg("ellipsis_rank").none(),
             nb::arg("save").none());
  module.def("compile", compile, nb::arg("context"), nb::arg("program"), nb::arg("kernel"),
             nb::arg("target"), nb::arg("settings"), nb::arg("ellipsis_rank"), nb::arg("optionals"),
             nb::arg("checked"), nb::arg("stages"), nb::arg("tuned"), nb::arg("precision").none(),
             nb::arg("observe"));
}
