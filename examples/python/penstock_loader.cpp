// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A loader of one's own as a Python module: tar shards with an npy array and a class per sample, shuffled and
// batched by threads of C++, as tensors that NumPy and PyTorch take through DLPack without a copy.

#include <penstock/codec/integer.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/integration/to_dlpack.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace nb = nanobind;
namespace ps = penstock;

namespace {

auto make_plan(const std::string& shards, unsigned batch, std::uint64_t seed, unsigned workers) {
  return ps::webdataset(shards) |
         ps::decode<ps::field<"npy", ps::npy<float>>, ps::field<"cls", ps::integer>> | ps::shuffle(seed) |
         ps::batch(batch) | ps::prefetch(8) | ps::workers(workers);
}
using plan_type = decltype(make_plan({}, 1, 0, 1));
using run_type = decltype(std::declval<plan_type>().open());
using batch_type = run_type::value_type;

/// A field of a batch; each consumer gets a tensor of its own, which holds the batch.
struct tensor {
  std::shared_ptr<batch_type> batch;
  ps::dlpack_tensor (*exported)(const batch_type&);

  /// The capsule that Python's protocol asks for: `dltensor_versioned`, or `dltensor` for older consumers. A
  /// consumer renames it; one that nobody has taken gives its tensor back.
  [[nodiscard]] nb::object dlpack(nb::handle max_version) const {
    ps::dlpack_tensor made = exported(*batch);
    PyObject* capsule = nullptr;
    if (!max_version.is_none() && nb::cast<int>(max_version[0]) >= 1)
      capsule = PyCapsule_New(made.release(), "dltensor_versioned",
                              give_back<ps::dlpack::managed_tensor_versioned>);
    else
      capsule = PyCapsule_New(made.release_legacy(), "dltensor", give_back<ps::dlpack::managed_tensor>);
    if (capsule == nullptr) throw nb::python_error();
    return nb::steal(capsule);
  }

 private:
  template <class Managed>
  static void give_back(PyObject* capsule) {
    const char* const name = PyCapsule_GetName(capsule);
    if (std::string_view(name).starts_with("used_")) return;
    auto* const given = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
    given->deleter(given);
  }
};

/// A pass over an epoch, from where the run stands.
struct epoch {
  std::shared_ptr<run_type> run;
  run_type::epoch_range range;
  run_type::iterator at;
  bool begun = false;

  std::shared_ptr<batch_type> next() {
    const nb::gil_scoped_release others_work;  // while this thread waits
    if (std::exchange(begun, true)) ++at;
    if (at == range.end()) return nullptr;
    return std::make_shared<batch_type>(std::move(*at));
  }
};

struct loader {
  plan_type plan;
  std::shared_ptr<run_type> run = std::make_shared<run_type>(plan.open());

  epoch pass(std::uint64_t number) {
    const nb::gil_scoped_release others_work;
    auto range = run->epoch(number);
    return {run, range, range.begin()};
  }
  [[nodiscard]] nb::dict state() const {
    const ps::state now = run->state();
    nb::dict all;
    all["epoch"] = now.epoch;
    all["penstock"] = to_string(now);
    return all;
  }
  void restore(const nb::dict& state) {
    run = std::make_shared<run_type>(
        plan.open(ps::state_from_string(nb::cast<std::string>(state["penstock"]))));
  }
};

}  // namespace

NB_MODULE(penstock_loader, m) {
  nb::class_<tensor>(m, "Tensor")
      .def(
          "__dlpack__",
          [](const tensor& t, nb::handle stream, nb::handle max_version, nb::handle device, nb::handle copy) {
            const bool elsewhere = !device.is_none() && nb::cast<int>(device[0]) != 1;
            if (elsewhere || !stream.is_none() || copy.is(Py_True))
              throw nb::buffer_error("these tensors are on the host, without a stream, and are not copied");
            return t.dlpack(max_version);
          },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__", [](const tensor&) { return std::tuple(1, 0); });  // the host
  nb::class_<epoch>(m, "Epoch")
      .def("__iter__", [](nb::object self) { return self; })
      .def("__next__", [](epoch& e) {
        auto batch = e.next();
        if (!batch) throw nb::stop_iteration();
        nb::dict fields;
        fields["x"] = tensor{batch, [](const batch_type& b) { return ps::to_dlpack<"npy">(b); }};
        fields["y"] = tensor{batch, [](const batch_type& b) { return ps::to_dlpack<"cls">(b); }};
        return fields;
      });
  nb::class_<loader>(m, "Loader")
      .def(
          "__init__",
          [](loader* made, const std::string& shards, unsigned batch, std::uint64_t seed, unsigned workers) {
            new (made) loader{make_plan(shards, batch, seed, workers)};
          },
          nb::arg("shards"), nb::arg("batch") = 256, nb::arg("seed") = 0, nb::arg("workers") = 2)
      .def("epoch", &loader::pass, nb::arg("number"))
      .def("state_dict", &loader::state)
      .def("load_state_dict", &loader::restore);
}
