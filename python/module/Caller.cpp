//===- Caller.cpp - One kernel, called with Python's objects -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "python/module/Caller.h"
#include "python/module/Interrupt.h"
#include <cstring>

namespace tegula::python {

struct Caller::Call {
  std::vector<nb::handle> slots; // the caller's arguments; null: not given
  std::vector<Tensor> tensors;   // by parameter; those that were not given hold no object
  std::vector<std::string> constants;
  nb::object given; // out=
  std::vector<Tensor> outputs;
  std::string key;
  std::optional<int> device;
  size_t first = 0; // the parameter that the device comes from
  bool ofTorch = false;
};

static std::string quoted(const std::string &name) { return "'" + name + "'"; }

Caller::Caller(const Program &program, size_t kernel, nb::callable specialise)
    : specialise(std::move(specialise)) {
  const tegula_program *handle = program.handle.get();
  kernelName = tegula_kernel_name(handle, kernel);
  for (size_t index = 0; index < tegula_num_parameters(handle, kernel); ++index) {
    tegula_parameter_info info = tegula_parameter(handle, kernel, index);
    if (info.role == TEGULA_OUT) {
      outputs.push_back(info.name);
      continue;
    }
    std::string type = info.type;
    bool isPacked = type == "i4" || type == "u4";
    parameters.push_back({nb::steal<nb::str>(PyUnicode_InternFromString(info.name)), info.name,
                          info.role, isPacked, !info.default_value, type});
    hasParameterOut |= parameters.back().name == "out";
  }
}

void Caller::settle(const std::string &name) {
  for (Parameter &parameter : parameters)
    if (parameter.role == TEGULA_CONSTANT && parameter.name == name)
      parameter.isRequired = false;
}

void Caller::observe(nb::callable told, unsigned points) {
  tell = std::move(told);
  printPoints = points;
}

int Caller::traverse(visitproc visit, void *arg) const {
  Py_VISIT(specialise.ptr());
  Py_VISIT(tell.ptr());
  for (const auto &[key, kernel] : known)
    Py_VISIT(kernel->compiled.ptr());
  return 0;
}

void Caller::clear() {
  specialise.reset();
  tell.reset();
  known.clear();
}

void Caller::bind(const nb::args &args, const nb::kwargs &kwargs, Call &call) const {
  call.slots.resize(parameters.size());
  size_t count = args.size();
  if (count > parameters.size())
    raiseWrongCall("kernel " + quoted(kernelName) + " takes " + std::to_string(parameters.size()) +
                   " arguments, " + std::to_string(count) + " given; outputs are given by out=");
  for (size_t index = 0; index < count; ++index)
    call.slots[index] = PyTuple_GetItem(args.ptr(), Py_ssize_t(index));
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (kwargs.is_valid() && PyDict_Next(kwargs.ptr(), &position, &key, &value)) {
    size_t index = 0;
    while (index < parameters.size() && parameters[index].text.ptr() != key)
      ++index;
    if (index ==
        parameters.size()) // names are nearly always interned; compare the texts of the others
      for (index = 0; index < parameters.size(); ++index)
        if (PyUnicode_Compare(parameters[index].text.ptr(), key) == 0)
          break;
    if (index == parameters.size()) {
      std::string name = textOf(nb::handle(key));
      if (name != "out")
        raiseWrongCall("kernel " + quoted(kernelName) + " has no parameter " + quoted(name));
      if (value != Py_None)
        call.given = nb::borrow(value);
      continue;
    }
    if (call.slots[index].is_valid())
      raiseWrongCall(quoted(parameters[index].name) + " is given by position and by name");
    call.slots[index] = value;
  }
  for (size_t index = 0; index < parameters.size(); ++index) {
    nb::handle &slot = call.slots[index];
    if (slot.is_none())
      slot = nb::handle(); // as if left out
    if (!slot.is_valid() && parameters[index].isRequired)
      raiseWrongCall("kernel " + quoted(kernelName) + " needs " + quoted(parameters[index].name));
  }
}

/// A 4-bit tensor is passed as bytes; its last dim counts the integers in them.
static void unpack(const std::string &name, const char *type, Tensor &tensor) {
  if (tensor.dtype != TEGULA_U8 && tensor.dtype != TEGULA_I8)
    raiseWrongCall(quoted(name) + " is " + type +
                   ": pass its bytes, two integers in each, as uint8");
  tensor.dtype = std::strcmp(type, "i4") == 0 ? TEGULA_I4 : TEGULA_U4;
  if (!tensor.shape.empty())
    tensor.shape.back() *= 2;
}

static std::string nameOf(int device) {
  return device == cpuDevice ? "the CPU" : "CUDA device " + std::to_string(device);
}

void Caller::readTensors(Call &call) const {
  call.tensors.resize(parameters.size());
  for (size_t index = 0; index < parameters.size(); ++index) {
    const Parameter &parameter = parameters[index];
    if (!call.slots[index].is_valid() ||
        (parameter.role != TEGULA_IN && parameter.role != TEGULA_INOUT))
      continue;
    Tensor &tensor = call.tensors[index];
    readTensor(call.slots[index], parameter.role == TEGULA_INOUT, parameter.name.c_str(), tensor);
    call.ofTorch |= tensor.isTorch;
    if (!call.device) {
      call.device = tensor.device;
      call.first = index;
    } else if (*call.device != tensor.device) {
      raiseWrongCall(quoted(parameter.name) + " is on " + nameOf(tensor.device) + ", " +
                     quoted(parameters[call.first].name) + " on " + nameOf(*call.device));
    }
  }
}

void Caller::readOutputs(Call &call) const {
  if (!call.given.is_valid())
    return;
  bool isMany = nb::isinstance<nb::tuple>(call.given) || nb::isinstance<nb::list>(call.given);
  size_t count = isMany ? nb::len(call.given) : 1;
  if (count != outputs.size())
    raiseWrongCall("kernel " + quoted(kernelName) + " has " + std::to_string(outputs.size()) +
                   " outputs, out= gives " + std::to_string(count));
  for (size_t index = 0; index < count; ++index) {
    Tensor &tensor = call.outputs.emplace_back();
    nb::object one = isMany ? nb::object(call.given[index]) : call.given;
    readTensor(one, /*isWritten=*/true, outputs[index].c_str(), tensor);
    if (call.device && *call.device != tensor.device)
      raiseWrongCall(quoted(outputs[index]) + " is on " + nameOf(tensor.device) + ", " +
                     (call.first < parameters.size() ? "the inputs on " : "another output on ") +
                     nameOf(*call.device));
    call.device = tensor.device;
  }
}

/// A constant as the compiler's settings spell it.
static std::string constantOf(nb::handle value, const std::string &name) {
  if (value.ptr() == Py_True)
    return "true";
  if (value.ptr() == Py_False)
    return "false";
  if (nb::isinstance<nb::tuple>(value) || nb::isinstance<nb::list>(value)) {
    std::string text = "(";
    for (nb::handle element : nb::iter(value))
      text += (text.size() > 1 ? ", " : "") + constantOf(element, name);
    return text + ")";
  }
  if (!PyNumber_Check(value.ptr()) && !nb::isinstance<nb::str>(value))
    raiseWrongCall(quoted(name) + " is a constant: expected a number, a bool or a tuple of ints");
  return textOf(value);
}

const Caller::Specialised &Caller::find(const Call &call) {
  if (auto found = known.find(call.key); found != known.end())
    return *found->second;
  nb::list given;
  nb::dict constants;
  for (size_t index = 0; index < parameters.size(); ++index) {
    const Tensor &tensor = call.tensors[index];
    if (tensor.object.is_valid())
      given.append(nb::make_tuple(parameters[index].text, tegula_dtype_name(tensor.dtype),
                                  tensor.shape.size()));
    else if (parameters[index].role == TEGULA_SCALAR && call.slots[index].is_valid())
      given.append(nb::make_tuple(parameters[index].text, parameters[index].type, 0));
    if (parameters[index].role == TEGULA_CONSTANT && !call.constants[index].empty())
      constants[parameters[index].text] = call.constants[index].c_str();
  }
  auto made = std::make_shared<Specialised>();
  made->compiled = specialise(call.device.value_or(cpuDevice), nb::tuple(given), constants);
  made->kernel = nb::cast<const Compiled &>(made->compiled).handle.get();
  for (size_t index = 0; index < tegula_num_arguments(made->kernel); ++index) {
    tegula_argument_info info = tegula_argument(made->kernel, index);
    size_t source = 0;
    if (info.role == TEGULA_OUT) {
      while (outputs[source] != info.name)
        ++source;
      made->outputRanks += info.rank;
    } else {
      while (parameters[source].name != info.name)
        ++source;
    }
    made->sources.push_back({info, source});
  }
  // Another thread may have made one meanwhile, and run it: that one stays.
  return *known.try_emplace(call.key, std::move(made)).first->second;
}

static void setScalar(nb::handle value, tegula_dtype dtype, const std::string &type,
                      const std::string &name, tegula_value &result) {
  bool isFloat = dtype <= TEGULA_F8E5M2;
  if (isFloat) {
    result.number = PyFloat_AsDouble(value.ptr());
  } else {
    nb::object integer = nb::steal(PyNumber_Index(value.ptr()));
    if (integer.is_valid() && type == "u64")
      result.integer = static_cast<int64_t>(PyLong_AsUnsignedLongLong(integer.ptr()));
    else if (integer.is_valid())
      result.integer = PyLong_AsLongLong(integer.ptr());
  }
  // Narrower types are checked where the call is.
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)) {
    PyErr_Clear();
    raiseWrongCall("the scalar " + quoted(name) + " is " + type + ", got " + textOf(value) +
                   ", which is out of its range");
  }
  if (PyErr_Occurred()) {
    PyErr_Clear();
    raiseWrongCall(quoted(name) + " is a scalar: expected " +
                   (isFloat ? "a number" : "an integer") + ", got a " +
                   textOf(value.type().attr("__name__")));
  }
}

static void setTensor(const Tensor &tensor, tegula_value &result) {
  result.data = tensor.data;
  result.shape = tensor.shape.data();
  result.rank = tensor.shape.size();
  result.dtype = tensor.dtype;
}

nb::object Caller::run(const Specialised &kernel, Call &call) const {
  int device = call.device.value_or(cpuDevice);
  std::vector<tegula_value> values(kernel.sources.size());
  for (size_t index = 0; index < values.size(); ++index) {
    const auto &[info, source] = kernel.sources[index];
    if (info.role == TEGULA_SCALAR)
      setScalar(call.slots[source], info.dtype, parameters[source].type, parameters[source].name,
                values[index]);
    else if (info.role != TEGULA_OUT)
      setTensor(call.tensors[source], values[index]);
  }
  Message message;
  std::vector<int64_t> shapes(kernel.outputRanks);
  size_t workspaceBytes = 0;
  must(tegula_infer(kernel.kernel, values.data(), values.size(), shapes.data(), &workspaceBytes,
                    message),
       message);

  nb::object result = nb::none();
  nb::object made =
      outputs.size() > 1 ? nb::steal(PyTuple_New(Py_ssize_t(outputs.size()))) : nb::object();
  bool areGiven = call.given.is_valid();
  if (!areGiven)
    call.outputs.resize(outputs.size());
  const int64_t *shape = shapes.data();
  for (size_t index = 0; index < values.size(); ++index) {
    const auto &[info, source] = kernel.sources[index];
    if (info.role != TEGULA_OUT)
      continue;
    Tensor &tensor = call.outputs[source];
    if (areGiven) {
      if (info.dtype == TEGULA_I4 || info.dtype == TEGULA_U4) {
        unpack(outputs[source], tegula_dtype_name(info.dtype), tensor);
        if (info.rank && tensor.shape.back() == shape[info.rank - 1] + 1) // half a byte is left
          --tensor.shape.back();
      }
    } else {
      nb::object one = makeTensor(call.ofTorch, shape, info.rank, info.dtype, device, info.name);
      readMade(one, info.name, tensor);
      tensor.shape.assign(shape, shape + info.rank);
      tensor.dtype = info.dtype;
      if (made.is_valid())
        PyTuple_SetItem(made.ptr(), Py_ssize_t(source), nb::object(one).release().ptr());
      else
        result = std::move(one);
    }
    setTensor(tensor, values[index]);
    shape += info.rank;
  }

  tegula_launch_options options = {};
  options.struct_bytes = sizeof(options);
  nb::object workspace;
  if (device != cpuDevice) {
    bool isTorch = call.ofTorch || (!call.outputs.empty() && call.outputs.front().isTorch);
    if (isTorch)
      options.stream = currentStream(device);
    // From torch's allocator, which knows streams and may be used while a graph is captured.
    if (isTorch && workspaceBytes) {
      workspace = makeWorkspace(workspaceBytes, device, options.workspace);
      options.workspace_bytes = workspaceBytes;
    }
  }
  Observed observed;
  if (tell.is_valid()) {
    options.observed = observed;
    options.print_points = printPoints;
  }
  tegula_status status;
  {
    Interruptible interruptible;
    options.stop = interruptible.stop();
    nb::gil_scoped_release released;
    status = tegula_launch(kernel.kernel, values.data(), values.size(), &options, message);
  }
  for (size_t index = 0; index < parameters.size(); ++index)
    if (parameters[index].role == TEGULA_INOUT && call.tensors[index].isTorch)
      noteWritten(call.tensors[index].object);
  if (areGiven)
    for (const Tensor &tensor : call.outputs)
      if (tensor.isTorch)
        noteWritten(tensor.object);
  if (status == TEGULA_STOPPED)
    Interruptible::raise();
  if (observed.isGiven())
    tell(observed.json(), observed.text(), message.text());
  must(status, message);
  return areGiven ? call.given : made.is_valid() ? made : result;
}

nb::object Caller::call(const nb::args &args, const nb::kwargs &kwargs) {
  WithoutTorchModes plain;
  Call call;
  bind(args, kwargs, call);
  readTensors(call);
  readOutputs(call);
  call.constants.resize(parameters.size());
  call.key.reserve(64);
  int device = call.device.value_or(cpuDevice);
  call.key.append(reinterpret_cast<const char *>(&device), sizeof(device));
  for (size_t index = 0; index < parameters.size(); ++index) {
    const Parameter &parameter = parameters[index];
    Tensor &tensor = call.tensors[index];
    if (parameter.role == TEGULA_CONSTANT) {
      if (call.slots[index].is_valid())
        call.constants[index] = constantOf(call.slots[index], parameter.name);
      call.key += call.constants[index];
      call.key += '\0';
    } else if (!tensor.object.is_valid()) {
      call.key += call.slots[index].is_valid() ? '\xfe' : '\xff'; // a scalar may have a default
    } else {
      if (parameter.isPacked)
        unpack(parameter.name, parameter.type.c_str(), tensor);
      call.key += char(tensor.dtype);
      call.key += char(tensor.shape.size());
    }
  }
  return run(find(call), call);
}

} // namespace tegula::python
