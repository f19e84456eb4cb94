//===- Tensors.cpp - Reading and making arrays of other libraries ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "python/module/Tensors.h"
#include "python/module/DlpackExchange.h"
#include <map>

namespace tegula::python {
namespace {

constexpr size_t numDTypes = size_t(TEGULA_U64) + 1;

/// Names that are looked up in every call, made once and kept.
struct Names {
  PyObject *shape = make("shape"), *dtype = make("dtype"), *isCpu = make("is_cpu"),
           *isCuda = make("is_cuda"), *getDevice = make("get_device"), *dataPtr = make("data_ptr"),
           *isContiguous = make("is_contiguous"), *contiguous = make("contiguous"),
           *isNeg = make("is_neg"), *resolveNeg = make("resolve_neg"),
           *isInference = make("is_inference"), *isNested = make("is_nested"),
           *layout = make("layout");
  static PyObject *make(const char *text) { return PyUnicode_InternFromString(text); }
  static const Names &get() {
    static const Names *names = new Names();
    return *names;
  }
};

nb::object checked(PyObject *made) {
  if (!made)
    throw nb::python_error();
  return nb::steal(made);
}

nb::object attribute(nb::handle object, PyObject *name) {
  return checked(PyObject_GetAttr(object.ptr(), name));
}

nb::object method(nb::handle object, PyObject *name) {
  PyObject *arguments[] = {object.ptr()};
  return checked(PyObject_VectorcallMethod(name, arguments, 1, nullptr));
}

/// What is needed of torch, found when the first tensor of it arrives and kept.
class Torch {
public:
  nb::object tensorType, parameterType, empty, incrementVersion, rawStream, countModes,
      withoutModes;
  /// `empty_strided` without the dispatcher, a tenth of what `empty` takes; on CUDA on the device
  /// that is current.
  nb::object emptyOnCpu, emptyOnCuda;
  nb::object strided;   // the layout of dense tensors
  nb::object isWrapped; // of tensors that transforms of torch.func made; None in a torch without it
  nb::object dtypes[numDTypes];
  const DlpackExchange *exchange = nullptr; // null: this torch has none

  /// Null where torch has not been imported.
  static Torch *get() {
    static Torch *torch = nullptr;
    if (torch)
      return torch;
    static PyObject *name = PyUnicode_InternFromString("torch");
    nb::object module = nb::steal(PyImport_GetModule(name));
    // A module that is being imported has no tensors yet.
    if (!module.is_valid() || !nb::hasattr(module, "nn") || !nb::hasattr(module, "autograd"))
      return nullptr;
    torch = new Torch(module);
    return torch;
  }

  bool isTensor(nb::handle object) const {
    PyTypeObject *type = Py_TYPE(object.ptr());
    PyTypeObject *wanted = reinterpret_cast<PyTypeObject *>(tensorType.ptr());
    return type == wanted || PyType_IsSubtype(type, wanted);
  }

  /// A tensor that nothing in Python stands for.
  bool isPlain(nb::handle object) const {
    nb::handle type(reinterpret_cast<PyObject *>(Py_TYPE(object.ptr())));
    return type.is(tensorType) || type.is(parameterType);
  }

  /// The device as torch's object.
  nb::object device(int number) {
    nb::object &made = devices[number];
    if (!made.is_valid())
      made = number == cpuDevice ? deviceType("cpu") : deviceType("cuda", number);
    return made;
  }

private:
  explicit Torch(const nb::object &module) {
    static const char *names[numDTypes] = {
        "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
        "int64",   "int32",   "int16",   "int8",     "uint8",         nullptr,
        nullptr,   "bool",    "uint16",  "uint32",   "uint64"};
    for (size_t dtype = 0; dtype < numDTypes; ++dtype)
      if (names[dtype] && nb::hasattr(module, names[dtype]))
        dtypes[dtype] = module.attr(names[dtype]);
    tensorType = module.attr("Tensor");
    parameterType = module.attr("nn").attr("Parameter");
    empty = module.attr("empty");
    strided = module.attr("strided");
    isWrapped = nb::getattr(nb::getattr(module.attr("_C"), "_functorch", nb::none()),
                            "is_functorch_wrapped_tensor", nb::none());
    deviceType = module.attr("device");
    exchange = exchangeOf(tensorType);
    incrementVersion = module.attr("autograd").attr("graph").attr("increment_version");
    nb::object internals = module.attr("_C");
    if (nb::hasattr(internals, "_len_torch_function_stack") &&
        nb::hasattr(internals, "DisableTorchFunction")) {
      countModes = internals.attr("_len_torch_function_stack");
      withoutModes = internals.attr("DisableTorchFunction");
    }
    if (nb::hasattr(internals, "_cuda_getCurrentRawStream"))
      rawStream = internals.attr("_cuda_getCurrentRawStream");
    // What code that torch.compile writes calls.
    nb::object inductor =
        nb::getattr(nb::getattr(internals, "_dynamo", nb::none()), "guards", nb::none());
    emptyOnCpu = nb::getattr(inductor, "_empty_strided_cpu", nb::none());
    emptyOnCuda = nb::getattr(inductor, "_empty_strided_cuda", nb::none());
  }
  nb::object deviceType;
  std::map<int, nb::object> devices;
};

/// DLPack's code and width; nanobind names the codes below 7.
bool readDType(nb::dlpack::dtype dtype, tegula_dtype &result) {
  struct Row {
    uint8_t code, bits;
    tegula_dtype dtype;
  };
  static const Row rows[] = {{2, 64, TEGULA_F64},  {2, 32, TEGULA_F32},    {2, 16, TEGULA_F16},
                             {4, 16, TEGULA_BF16}, {10, 8, TEGULA_F8E4M3}, {12, 8, TEGULA_F8E5M2},
                             {0, 64, TEGULA_I64},  {0, 32, TEGULA_I32},    {0, 16, TEGULA_I16},
                             {0, 8, TEGULA_I8},    {1, 8, TEGULA_U8},      {1, 16, TEGULA_U16},
                             {1, 32, TEGULA_U32},  {1, 64, TEGULA_U64},    {6, 8, TEGULA_BOOL}};
  for (const Row &row : rows)
    if (dtype.lanes == 1 && dtype.code == row.code && dtype.bits == row.bits) {
      result = row.dtype;
      return true;
    }
  return false;
}

bool isContiguous(const nb::dlpack::dltensor &tensor) {
  int64_t stride = 1;
  for (int32_t dim = 0; dim < tensor.ndim; ++dim)
    if (tensor.shape[dim] == 0)
      return true;
  for (int32_t dim = tensor.strides ? tensor.ndim : 0; dim-- > 0; stride *= tensor.shape[dim])
    if (tensor.shape[dim] != 1 && tensor.strides[dim] != stride)
      return false;
  return true;
}

/// Reads a tensor of torch as it lies there. False: it must be asked, and what stands in `tensor`
/// does not count.
bool readExchanged(const Torch &torch, nb::handle argument, Tensor &tensor) {
  nb::dlpack::dltensor view;
  if (!torch.exchange || !torch.isPlain(argument))
    return false;
  if (torch.exchange->readTensor(argument.ptr(), &view)) {
    PyErr_Clear();
    return false;
  }
  bool isCuda = view.device.device_type == nb::device::cuda::value;
  if ((!isCuda && view.device.device_type != nb::device::cpu::value) ||
      !readDType(view.dtype, tensor.dtype) || !isContiguous(view) ||
      method(argument, Names::get().isNeg).ptr() == Py_True)
    return false;
  tensor.isTorch = true;
  tensor.object = nb::borrow(argument);
  tensor.device = isCuda ? view.device.device_id : cpuDevice;
  tensor.data = static_cast<char *>(view.data) + view.byte_offset;
  tensor.shape.assign(view.shape, view.shape + view.ndim);
  return true;
}

/// Refuses tensors whose elements do not lie side by side in memory of their own.
void requireDense(const Torch &torch, nb::handle argument, const std::string &name) {
  if (attribute(argument, Names::get().isNested).ptr() == Py_True)
    raiseWrongCall("'" + name + "' is a nested tensor: pass " + name +
                   ".to_padded_tensor(0.0) and the lengths");
  nb::object layout = attribute(argument, Names::get().layout);
  if (layout.ptr() != torch.strided.ptr())
    raiseWrongCall("'" + name + "' has the layout " + textOf(layout) +
                   ", expected a dense tensor: pass " + name +
                   ".to_dense(), or its indices and values as tensors of their own");
  if (!torch.isWrapped.is_none() && torch.isWrapped(argument).ptr() == Py_True)
    raiseWrongCall(
        "'" + name +
        "' is a tensor inside of torch.vmap, torch.func.grad or the like, which cannot look "
        "into a kernel: write the batch dim in the program, as x: f32[..., N], or make the kernel "
        "an "
        "operator with a gradient (tegula.library)");
}

void readTorch(Torch &torch, nb::handle argument, bool isWritten, const char *name,
               Tensor &tensor) {
  if (readExchanged(torch, argument, tensor))
    return;
  requireDense(torch, argument, name);
  const Names &names = Names::get();
  tensor.isTorch = true;
  tensor.object = nb::borrow(argument);
  if (attribute(argument, names.isCpu).ptr() != Py_True) {
    if (attribute(argument, names.isCuda).ptr() != Py_True)
      raiseWrongCall("'" + std::string(name) + "' is on the device '" +
                     textOf(argument.attr("device")) + "', expected cpu or cuda");
    tensor.device = nb::cast<int>(method(argument, names.getDevice));
  }
  nb::object dtype = attribute(argument, names.dtype);
  size_t found = 0;
  while (found < numDTypes && torch.dtypes[found].ptr() != dtype.ptr())
    ++found;
  if (found == numDTypes)
    raiseWrongCall("'" + std::string(name) + "' has the dtype " + textOf(dtype) +
                   ", which Tegula does not know");
  tensor.dtype = tegula_dtype(found);
  bool isPlain = method(argument, names.isContiguous).ptr() == Py_True;
  bool isNegated = method(argument, names.isNeg).ptr() == Py_True;
  if (!isPlain || isNegated) {
    if (isWritten)
      raiseWrongCall("'" + std::string(name) + "' is written and not contiguous: pass " + name +
                     ".contiguous() and copy the result back");
    if (isNegated)
      tensor.object = method(tensor.object, names.resolveNeg);
    tensor.object = method(tensor.object, names.contiguous);
  }
  nb::object shape = attribute(argument, names.shape);
  Py_ssize_t rank = PyTuple_Size(shape.ptr());
  for (Py_ssize_t dim = 0; dim < rank; ++dim)
    tensor.shape.push_back(PyLong_AsLongLong(PyTuple_GetItem(shape.ptr(), dim)));
  if (PyErr_Occurred())
    throw nb::python_error();
  tensor.data = PyLong_AsVoidPtr(method(tensor.object, names.dataPtr).ptr());
  if (PyErr_Occurred())
    throw nb::python_error();
}

bool isContiguous(const nb::ndarray<nb::ro> &array) {
  int64_t stride = 1;
  for (size_t dim = 0; dim < array.ndim(); ++dim)
    if (array.shape(dim) == 0)
      return true;
  for (size_t dim = array.ndim(); dim-- > 0; stride *= array.shape(dim))
    if (array.shape(dim) != 1 && array.stride(dim) != stride)
      return false;
  return true;
}

void readOther(nb::handle argument, bool isWritten, const char *name, Tensor &tensor) {
  std::string quoted = "'" + std::string(name) + "' ";
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(argument, array))
    raiseWrongCall(
        quoted + "is a " + textOf(argument.type().attr("__name__")) +
        ", expected a torch tensor, a numpy array or another object with __dlpack__ whose dtype "
        "Tegula knows");
  if (isWritten) {
    nb::ndarray<> writable;
    if (!nb::try_cast(argument, writable))
      raiseWrongCall(quoted + "is written and read-only");
  }
  tensor.object = nb::borrow(argument);
  if (!isContiguous(array)) {
    if (isWritten)
      raiseWrongCall(quoted +
                     "is written and not contiguous: pass a contiguous array and copy the result "
                     "back");
    if (array.device_type() != nb::device::cpu::value)
      raiseWrongCall(quoted + "is not contiguous");
    nb::object numpy = nb::module_::import_("numpy");
    nb::object source = nb::isinstance(argument, numpy.attr("ndarray"))
                            ? nb::borrow(argument)
                            : nb::object(numpy.attr("from_dlpack")(argument));
    tensor.object = numpy.attr("ascontiguousarray")(source);
    array = nb::cast<nb::ndarray<nb::ro>>(tensor.object);
  }
  if (!readDType(array.dtype(), tensor.dtype))
    raiseWrongCall(quoted + "has a dtype of " + std::to_string(array.dtype().bits) +
                   " bits that Tegula does not know");
  switch (array.device_type()) {
  case nb::device::cpu::value:
  case nb::device::cuda_host::value:
    break;
  case nb::device::cuda::value:
  case nb::device::cuda_managed::value:
    tensor.device = array.device_id();
    break;
  default:
    raiseWrongCall(quoted + "is on a device that is neither a CPU nor CUDA's");
  }
  for (size_t dim = 0; dim < array.ndim(); ++dim)
    tensor.shape.push_back(int64_t(array.shape(dim)));
  tensor.data = const_cast<void *>(array.data());
  tensor.exported = std::move(array);
}

void *addressOf(const Torch &torch, nb::handle made) {
  nb::dlpack::dltensor view;
  if (torch.exchange && torch.exchange->readTensor(made.ptr(), &view) == 0)
    return view.data;
  PyErr_Clear();
  void *address = PyLong_AsVoidPtr(method(made, Names::get().dataPtr).ptr());
  if (PyErr_Occurred())
    throw nb::python_error();
  return address;
}

nb::object shapeOf(const int64_t *shape, size_t rank) {
  nb::object tuple = checked(PyTuple_New(Py_ssize_t(rank)));
  for (size_t dim = 0; dim < rank; ++dim)
    PyTuple_SetItem(tuple.ptr(), Py_ssize_t(dim), PyLong_FromLongLong(shape[dim]));
  return tuple;
}

nb::object makeTorch(Torch &torch, const int64_t *shape, size_t rank, tegula_dtype dtype,
                     int device) {
  nb::object sizes = shapeOf(shape, rank);
  const nb::object &quick = device == cpuDevice ? torch.emptyOnCpu : torch.emptyOnCuda;
  if (!quick.is_none()) {
    std::vector<int64_t> strides(rank, 1);
    for (size_t dim = rank; dim-- > 1;)
      strides[dim - 1] = strides[dim] * std::max<int64_t>(shape[dim], 1);
    nb::object apart = shapeOf(strides.data(), rank);
    PyObject *arguments[] = {sizes.ptr(), apart.ptr(), torch.dtypes[dtype].ptr()};
    nb::object made = checked(PyObject_Vectorcall(quick.ptr(), arguments, 3, nullptr));
    if (device == cpuDevice || nb::cast<int>(method(made, Names::get().getDevice)) == device)
      return made;
  }
  static PyObject *keywords = nb::make_tuple("dtype", "device").release().ptr();
  nb::object place = torch.device(device);
  PyObject *arguments[] = {sizes.ptr(), torch.dtypes[dtype].ptr(), place.ptr()};
  return checked(PyObject_Vectorcall(torch.empty.ptr(), arguments, 1, keywords));
}

} // namespace

WithoutTorchModes::WithoutTorchModes() {
  Torch *torch = Torch::get();
  if (!torch || !torch->countModes.is_valid())
    return;
  nb::object count = checked(PyObject_CallNoArgs(torch->countModes.ptr()));
  if (PyLong_AsLong(count.ptr()) <= 0)
    return;
  guard = torch->withoutModes();
  guard.attr("__enter__")();
}

WithoutTorchModes::~WithoutTorchModes() {
  if (guard.is_valid())
    guard.attr("__exit__")(nb::none(), nb::none(), nb::none());
}

void readTensor(nb::handle argument, bool isWritten, const char *name, Tensor &tensor) {
  if (Torch *torch = Torch::get(); torch && torch->isTensor(argument))
    readTorch(*torch, argument, isWritten, name, tensor);
  else
    readOther(argument, isWritten, name, tensor);
}

void readMade(nb::handle made, const char *name, Tensor &tensor) {
  Torch *torch = Torch::get();
  if (!torch || !torch->isTensor(made))
    return readOther(made, /*isWritten=*/true, name, tensor);
  tensor.isTorch = true;
  tensor.object = nb::borrow(made);
  tensor.data = addressOf(*torch, made);
}

nb::object makeTensor(bool ofTorch, const int64_t *shape, size_t rank, tegula_dtype dtype,
                      int device, const char *name) {
  std::vector<int64_t> bytes(shape, shape + rank);
  if (dtype == TEGULA_I4 || dtype == TEGULA_U4) { // two to a byte
    if (rank)
      bytes.back() = (bytes.back() + 1) / 2;
    dtype = TEGULA_U8;
  }
  Torch *torch = Torch::get();
  if (ofTorch || device != cpuDevice) {
    if (!torch)
      raiseWrongCall("'" + std::string(name) +
                     "' cannot be made: without torch, give outputs on a CUDA device by out=");
    return makeTorch(*torch, bytes.data(), rank, dtype, device);
  }
  static const char *names[numDTypes] = {
      "float64", "float32", "float16", nullptr, nullptr, nullptr,  "int64",  "int32", "int16",
      "int8",    "uint8",   nullptr,   nullptr, "bool",  "uint16", "uint32", "uint64"};
  if (!names[dtype])
    raiseWrongCall("'" + std::string(name) + "' is " + tegula_dtype_name(dtype) +
                   ", which numpy has not: give a torch tensor by out=");
  static PyObject *empty = nb::object(nb::module_::import_("numpy").attr("empty")).release().ptr();
  return nb::borrow(empty)(shapeOf(bytes.data(), rank), names[dtype]);
}

void noteWritten(nb::handle tensor) {
  // Tensors of inference mode have no version.
  if (method(tensor, Names::get().isInference).ptr() != Py_True)
    Torch::get()->incrementVersion(tensor);
}

void *currentStream(int device) {
  Torch *torch = Torch::get();
  void *stream = nullptr;
  if (torch && torch->exchange &&
      torch->exchange->currentStream(nb::device::cuda::value, device, &stream) == 0)
    return stream;
  PyErr_Clear();
  if (!torch || !torch->rawStream.is_valid())
    return nullptr;
  return PyLong_AsVoidPtr(torch->rawStream(device).ptr());
}

nb::object makeWorkspace(size_t bytes, int device, void *&address) {
  Torch *torch = Torch::get();
  int64_t extent = int64_t(bytes) + 255;
  nb::object memory = makeTorch(*torch, &extent, 1, TEGULA_U8, device);
  uintptr_t begin = reinterpret_cast<uintptr_t>(addressOf(*torch, memory));
  address = reinterpret_cast<void *>((begin + 255) / 256 * 256);
  return memory;
}

} // namespace tegula::python
