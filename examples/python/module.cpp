// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The plans of plans.hpp as a Python module. Batches are filled by threads of C++, and are tensors that NumPy
// and PyTorch take through DLPack without a copy.

#include "plans.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace nb = nanobind;

namespace penstock_loader {
namespace {

template <class Managed>
void give_back(PyObject* capsule) {
  const char* const name = PyCapsule_GetName(capsule);
  if (std::string_view(name).starts_with("used_")) return;
  auto* const given = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  given->deleter(given);
}

/// The capsule that Python's protocol asks for: `dltensor_versioned`, or `dltensor` for older consumers. A
/// consumer renames it; one that nobody has taken gives its tensor back.
nb::object dlpack(const tensor& t, nb::handle max_version) {
  ps::dlpack_tensor made = t.make();
  PyObject* capsule = nullptr;
  if (!max_version.is_none() && nb::cast<int>(max_version[0]) >= 1)
    capsule =
        PyCapsule_New(made.release(), "dltensor_versioned", give_back<ps::dlpack::managed_tensor_versioned>);
  else
    capsule = PyCapsule_New(made.release_legacy(), "dltensor", give_back<ps::dlpack::managed_tensor>);
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal(capsule);
}

opens plan_of(const std::string& kind, const settings& how) {
  if (kind == "webdataset") return webdataset_plan(how);
  if (kind == "images") return images_plan(how);
  if (kind == "tokens") return tokens_plan(how);
  if (kind == "parquet") return parquet_plan(how);
  throw std::invalid_argument("there is no loader '" + kind +
                              "'; choose webdataset, images, tokens or parquet");
}

/// A loader: a plan, and the run that works on it.
class loader {
 public:
  loader(const std::string& kind, const settings& how) : open_(plan_of(kind, how)), run_(open_({})) {}

  void begin(std::uint64_t epoch) {
    const nb::gil_scoped_release others_work;
    run_->begin(epoch);
  }
  nb::object next() {
    std::optional<batch_fields> fields;
    {
      const nb::gil_scoped_release others_work;  // while this thread waits
      fields = run_->next();
    }
    if (!fields) return nb::none();
    nb::dict made;
    for (tensor& one : *fields) {
      const std::string name = one.name;
      made[name.c_str()] = nb::cast(std::move(one));
    }
    return made;
  }
  [[nodiscard]] std::uint64_t steps() const { return run_->steps(); }
  [[nodiscard]] std::tuple<std::uint64_t, std::string> state() const {
    const ps::state now = run_->state();
    return {now.epoch, to_string(now)};
  }
  void restore(const std::string& state) { run_ = open_(state); }

 private:
  opens open_;
  std::unique_ptr<any_run> run_;
};

}  // namespace
}  // namespace penstock_loader

NB_MODULE(_penstock, m) {
  using namespace penstock_loader;
  nb::class_<tensor>(m, "Tensor")
      .def(
          "__dlpack__",
          [](const tensor& t, nb::handle stream, nb::handle max_version, nb::handle device, nb::handle copy) {
            const bool elsewhere = !device.is_none() && nb::cast<int>(device[0]) != 1;
            if (elsewhere || !stream.is_none() || copy.is(Py_True))
              throw nb::buffer_error("these tensors are on the host, without a stream, and are not copied");
            return dlpack(t, max_version);
          },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__", [](const tensor&) { return std::tuple(1, 0); });  // the host
  nb::class_<loader>(m, "Loader")
      .def(
          "__init__",
          [](loader* made, const std::string& kind, const std::string& path, unsigned batch,
             std::uint64_t seed, unsigned workers, unsigned size, unsigned window, std::uint64_t rank,
             std::uint64_t world) {
            new (made) loader(kind, {path, batch, seed, workers, size, window, rank, world});
          },
          nb::arg("kind"), nb::arg("path"), nb::arg("batch"), nb::arg("seed"), nb::arg("workers"),
          nb::arg("size"), nb::arg("window"), nb::arg("rank"), nb::arg("world"))
      .def("begin", &loader::begin)
      .def("next", &loader::next)
      .def("steps", &loader::steps)
      .def("state", &loader::state)
      .def("restore", &loader::restore);
}
